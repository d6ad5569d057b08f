// GPT-OSS: an answer is several messages, <|channel|>NAME<|message|>TEXT<|end|>, with
// <|start|>assistant between them. Channel analysis is reasoning, final the answer; a header with
// to=functions.NAME is a call whose arguments are the text, ended by <|call|>.
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr std::string_view kMarkers[] = {"<|channel|>", "<|message|>",   "<|end|>",   "<|start|>",
                                         "<|call|>",    "<|constrain|>", "<|return|>"};
enum Marker { kChannel, kMessage, kEnd, kStart, kCall, kConstrain, kReturn };

constexpr CallSyntax kSyntax{"",
                             "",
                             "",
                             "<|channel|>commentary to=functions.",
                             " <|constrain|>json<|message|>",
                             "",
                             false,
                             " to=functions."};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      marked_ = marked_ || piece.marker >= 0;
      // In a string of the arguments it is text.
      if (piece.marker >= 0 && !in_header_ && quotes_.quoted()) {
        add(kMarkers[piece.marker], out);
        continue;
      }
      switch (piece.marker) {
        case kChannel:
        case kStart:
          if (in_header_)
            header_ += ' ';
          else
            end_message(out);
          break;
        case kMessage:
          if (in_header_) begin_message(out);
          break;
        case kConstrain:
          header_ += ' ';
          break;
        case kEnd:
        case kCall:
        case kReturn:
          end_message(out);
          break;
        default:
          add(piece.text, out);
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    if (!marked_) out.content += header_;  // a model that does not use channels
    end_message(out);
  }

  bool in_reasoning() const override { return !in_header_ && kind_ == Kind::kReasoning; }

 private:
  enum class Kind { kContent, kReasoning, kCall };

  void add(std::string_view text, ChatOutput& out) {
    if (in_header_)
      header_ += text;
    else if (kind_ == Kind::kContent)
      out.content += text;
    else if (kind_ == Kind::kReasoning)
      out.reasoning += text;
    else if (std::string more = trim_.push(text); !more.empty())
      out.add_arguments(more), quotes_.push(more), empty_ = false;
  }

  void begin_message(ChatOutput& out) {
    in_header_ = false;
    kind_ = Kind::kContent;
    if (header_.find("analysis") != header_.npos) kind_ = Kind::kReasoning;
    std::size_t to = header_.find("to=");
    if (to == header_.npos) return;
    std::string name = header_.substr(to + 3);
    name.resize(std::min(name.find_first_of(" \t\n"), name.size()));
    if (name.starts_with("functions.")) name.erase(0, 10);
    if (name.empty()) return;
    kind_ = Kind::kCall;
    trim_ = {};
    quotes_ = {};
    empty_ = true;
    out.begin_call(std::move(name));
  }

  void end_message(ChatOutput& out) {
    if (!in_header_ && kind_ == Kind::kCall) {
      if (empty_) out.add_arguments("{}");
      out.end_call();
    }
    in_header_ = true;
    quotes_ = {};
    header_.clear();
  }

  MarkerStream stream_{{std::begin(kMarkers), std::end(kMarkers)}};
  bool in_header_ = true, marked_ = false;
  Kind kind_ = Kind::kContent;
  std::string header_;
  TrimStream trim_;    // of a call's arguments
  JsonQuotes quotes_;  // of the same
  bool empty_ = true;  // there were none so far
};

}  // namespace

extern const ToolFormat kToolFormat_harmony;
const ToolFormat kToolFormat_harmony{
    "harmony",
    10,
    [](std::string_view source) {
      return source.find("<|channel|>") != source.npos && source.find("<|message|>") != source.npos;
    },
    kMarkers,
    {"<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant",
     "<|channel|>final<|message|>"},
    kSyntax,
    [] { return std::unique_ptr<AnswerParser>(std::make_unique<Parser>()); }};

}  // namespace vitrine
