#include "chat/tool_format.h"

#include <algorithm>
#include <utility>

#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

class PlainParser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override { out.content += text; }
  void finish(ChatOutput&) override {}
};

// Reasoning at the beginning of an answer, between tags; the rest is another parser's.
class ReasoningParser : public AnswerParser {
 public:
  ReasoningParser(const ReasoningTags& tags, bool reasoning, std::unique_ptr<AnswerParser> rest)
      : tags_(tags),
        state_(reasoning ? State::kReasoning : State::kStart),
        end_({tags.end}),
        rest_(std::move(rest)) {}

  void push(std::string_view text, ChatOutput& out) override {
    if (state_ == State::kStart) {
      held_ += text;
      std::string_view seen = held_;
      seen.remove_prefix(std::min(seen.find_first_not_of(kSpace), seen.size()));
      if (seen.size() < tags_.begin.size() && std::string_view(tags_.begin).starts_with(seen))
        return;
      bool reasons = seen.starts_with(tags_.begin);
      state_ = reasons ? State::kReasoning : State::kRest;
      std::string all = std::exchange(held_, {});
      if (reasons)
        reason(std::string_view(all).substr(all.find(tags_.begin) + tags_.begin.size()), out);
      else
        rest_->push(all, out);
    } else if (state_ == State::kReasoning) {
      reason(text, out);
    } else {
      rest(text, out);
    }
  }

  void finish(ChatOutput& out) override {
    if (state_ == State::kStart) rest_->push(held_, out);
    if (state_ == State::kReasoning) write(end_.finish(), out);
    rest_->finish(out);
  }

  bool in_reasoning() const override { return state_ == State::kReasoning; }

 private:
  enum class State { kStart, kReasoning, kRest };

  void reason(std::string_view text, ChatOutput& out) {
    for (const MarkerStream::Piece& piece : end_.push(text)) {
      if (state_ == State::kRest) {
        rest(piece.marker < 0 ? std::string_view(piece.text) : std::string_view(tags_.end), out);
      } else if (piece.marker < 0) {
        write(piece.text, out);
      } else {
        state_ = State::kRest;
        skip_space_ = true;
      }
    }
    if (state_ == State::kRest) {
      std::string more = end_.finish();
      rest(more, out);
    }
  }

  // Without the white space at both ends.
  void write(std::string_view text, ChatOutput& out) {
    std::size_t last = text.find_last_not_of(kSpace);
    if (last == text.npos) {
      space_ += text;
      return;
    }
    if (!std::exchange(begun_, true)) {
      space_.clear();
      text.remove_prefix(text.find_first_not_of(kSpace));
      last = text.find_last_not_of(kSpace);
    }
    out.reasoning += space_;
    out.reasoning += text.substr(0, last + 1);
    space_ = text.substr(last + 1);
  }

  void rest(std::string_view text, ChatOutput& out) {
    if (skip_space_) {
      text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
      if (text.empty()) return;
      skip_space_ = false;
    }
    rest_->push(text, out);
  }

  ReasoningTags tags_;
  State state_;
  MarkerStream end_;
  std::unique_ptr<AnswerParser> rest_;
  std::string held_, space_;
  bool begun_ = false, skip_space_ = false;
};

}  // namespace

const ToolFormat* find_tool_format(std::string_view source) {
  std::vector<const ToolFormat*> all(all_tool_formats().begin(), all_tool_formats().end());
  std::sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->order < b->order; });
  for (const ToolFormat* format : all)
    if (format->matches(source)) return format;
  return nullptr;
}

ReasoningTags find_reasoning_tags(std::string_view source) {
  constexpr std::string_view kTags[][2] = {
      {"<think>", "</think>"},           {"[THINK]", "[/THINK]"},
      {"<seed:think>", "</seed:think>"}, {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<thinking>", "</thinking>"},     {"<reasoning>", "</reasoning>"},
  };
  for (const auto& [begin, end] : kTags)
    if (source.find(end) != source.npos) return {std::string(begin), std::string(end)};
  return {};
}

std::unique_ptr<AnswerParser> make_parser(const ToolFormat* format, const ReasoningTags* tags,
                                          bool reasoning) {
  std::unique_ptr<AnswerParser> out =
      format != nullptr ? format->make() : std::make_unique<PlainParser>();
  if (tags == nullptr || tags->end.empty() || (format != nullptr && format->reads_reasoning))
    return out;
  return std::make_unique<ReasoningParser>(*tags, reasoning, std::move(out));
}

}  // namespace vitrine
