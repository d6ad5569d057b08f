// Newer Mistral models: [TOOL_CALLS]NAME[ARGS]{..}, once for each call. Where a template has a
// [CALL_ID] too, a required call does without: ids are given by the server.
#include "chat/tools/mistral.h"

namespace vitrine {
namespace {

constexpr CallSyntax kSyntax{"[TOOL_CALLS]", "[TOOL_CALLS]", "", "", "[ARGS]", "",
                             true,           "[TOOL_CALLS]"};

}  // namespace

extern const ToolFormat kToolFormat_mistral_args;
const ToolFormat kToolFormat_mistral_args{"mistral_args",
                                          19,
                                          [](std::string_view source) {
                                            return source.find("[TOOL_CALLS]") != source.npos &&
                                                   source.find("[ARGS]") != source.npos;
                                          },
                                          kMistralMarkers,
                                          {},
                                          kSyntax,
                                          make_mistral_parser};

}  // namespace vitrine
