// Mistral's two ways of writing calls have one parser: a model may mix them.
#pragma once

#include <array>

#include "chat/tool_format.h"

namespace vitrine {

inline constexpr std::array<std::string_view, 3> kMistralMarkers{"[TOOL_CALLS]", "[ARGS]",
                                                                 "[CALL_ID]"};
std::unique_ptr<AnswerParser> make_mistral_parser();

}  // namespace vitrine
