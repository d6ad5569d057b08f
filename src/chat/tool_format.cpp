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

// Reasoning at the beginning of an answer, between tags; the rest goes to another parser.
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
    if (state_ == State::kReasoning) out.reasoning += trim_.push(end_.finish());
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
        out.reasoning += trim_.push(piece.text);
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
  std::string held_;
  TrimStream trim_;
  bool skip_space_ = false;
};

}  // namespace

void ChatOutput::begin_call(std::string name) {
  calls.push_back({std::move(name), "", true, false});
}

void ChatOutput::add_arguments(std::string_view text) {
  if (calls.empty() || calls.back().ends) calls.emplace_back();
  calls.back().arguments += text;
}

void ChatOutput::end_call() {
  if (calls.empty() || calls.back().ends) calls.emplace_back();
  calls.back().ends = true;
}

void ChatOutput::whole_call(ToolCall call) {
  calls.push_back({std::move(call.name), std::move(call.arguments), true, true});
}

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
  if (tags == nullptr || tags->end.empty() || reads_reasoning(format)) return out;
  return std::make_unique<ReasoningParser>(*tags, reasoning, std::move(out));
}

}  // namespace vitrine
