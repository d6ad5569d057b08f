// DeepSeek's two ways of writing calls have one parser.
#pragma once

#include <array>

#include "chat/tool_format.h"

namespace vitrine {

inline constexpr std::array<std::string_view, 5> kDeepseekMarkers{
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"};
std::unique_ptr<AnswerParser> make_deepseek_parser();

}  // namespace vitrine
