// DeepSeek from V3.1 on: <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>JSON<｜tool▁call▁end｜>, without a
// code fence.
#include "chat/tools/deepseek.h"

namespace vitrine {
namespace {

constexpr CallSyntax kSyntax{"<｜tool▁calls▁begin｜>",
                             "",
                             "<｜tool▁calls▁end｜>",
                             "<｜tool▁call▁begin｜>",
                             "<｜tool▁sep｜>",
                             "<｜tool▁call▁end｜>",
                             true,
                             "<｜tool▁calls▁begin｜>"};

}  // namespace

extern const ToolFormat kToolFormat_deepseek_v31;
const ToolFormat kToolFormat_deepseek_v31{"deepseek_v31",
                                          29,
                                          [](std::string_view source) {
                                            return source.find(kDeepseekMarkers[2]) !=
                                                       source.npos &&
                                                   source.find("```json") == source.npos;
                                          },
                                          kDeepseekMarkers,
                                          {},
                                          kSyntax,
                                          make_deepseek_parser};

}  // namespace vitrine
