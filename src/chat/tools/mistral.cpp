// Mistral: [TOOL_CALLS][{"name": .., "arguments": {..}}, ..]. The parser reads newer models'
// [TOOL_CALLS]NAME[ARGS]{..} too (mistral_args.cpp), maybe with [CALL_ID]ID between.
#include "chat/tools/mistral.h"

#include "chat/call_stream.h"
#include "chat/parsing.h"

namespace vitrine {
namespace {

constexpr CallSyntax kSyntax{"[TOOL_CALLS][",       ", ", "]",  "{\"name\": \"",
                             "\", \"arguments\": ", "}",  true, "[TOOL_CALLS]"};

class Parser : public AnswerParser {
 public:
  void push(std::string_view text, ChatOutput& out) override {
    for (const MarkerStream::Piece& piece : stream_.push(text)) {
      if (piece.marker < 0) {
        add(piece.text, out);
      } else if (inside_ && (calls_.quoted() || arguments_.quoted())) {
        add(kMistralMarkers[0], out);
      } else {
        if (inside_) end_call(out);
        inside_ = true;
      }
    }
  }

  void finish(ChatOutput& out) override {
    add(stream_.finish(), out);
    if (inside_) end_call(out);
    content_.finish(out);
  }

 private:
  void add(std::string_view text, ChatOutput& out) {
    if (!inside_) return content_.write(text, out);
    if (kind_ == Kind::kUnknown) {
      body_ += text;
      std::string_view seen = trimmed(body_);
      if (seen.empty()) return;
      bool json = seen[0] == '[' || seen[0] == '{';
      kind_ = json ? Kind::kJson : Kind::kName;
      if (json) calls_.push(std::exchange(body_, {}), out);
    } else if (kind_ == Kind::kJson) {
      calls_.push(text, out);
    } else {
      body_ += text;
    }
    if (kind_ == Kind::kName) read_name(out);
    if (kind_ == Kind::kArguments) body_.erase(0, arguments_.push(body_, out));
    if (kind_ == Kind::kArguments || calls_.begun()) content_.call();
  }

  // NAME[CALL_ID]ID[ARGS]{
  void read_name(ChatOutput& out) {
    std::size_t args = body_.find(kMistralMarkers[1]);
    if (args == body_.npos) return;
    std::size_t open = body_.find_first_not_of(" \t\r\n", args + kMistralMarkers[1].size());
    std::string_view name = std::string_view(body_).substr(0, args);
    name = trimmed(name.substr(0, name.find(kMistralMarkers[2])));
    if (open == body_.npos || name.empty() || body_[open] != '{') return;
    out.begin_call(std::string(name));
    body_.erase(0, open);
    kind_ = Kind::kArguments;
  }

  void end_call(ChatOutput& out) {
    std::string text = kind_ == Kind::kJson ? calls_.finish(out) : std::exchange(body_, {});
    bool called = kind_ == Kind::kArguments || calls_.begun();
    if (kind_ == Kind::kArguments && !arguments_.done()) out.end_call();
    if (called) content_.call();
    // What is left is no call: the text as it was.
    if (!called) content_.write(kMistralMarkers[0], out);
    content_.write(text, out);
    kind_ = Kind::kUnknown;
    calls_ = {};
    arguments_ = {};
  }

  enum class Kind { kUnknown, kJson, kName, kArguments };
  MarkerStream stream_{{"[TOOL_CALLS]"}};
  ContentWriter content_;
  bool inside_ = false;
  Kind kind_ = Kind::kUnknown;  // of what follows the marker
  std::string body_;            // not yet read
  CallStream calls_;
  ArgumentStream arguments_;
};

}  // namespace

std::unique_ptr<AnswerParser> make_mistral_parser() { return std::make_unique<Parser>(); }

extern const ToolFormat kToolFormat_mistral;
const ToolFormat kToolFormat_mistral{
    "mistral",
    20,
    [](std::string_view source) { return source.find("[TOOL_CALLS]") != source.npos; },
    kMistralMarkers,
    {},
    kSyntax,
    make_mistral_parser};

}  // namespace vitrine
