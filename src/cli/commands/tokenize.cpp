// vitrine tokenize: text to ids.
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  std::string text;
  bool no_special = false, parse_special = false, json = false;
};

Result<int> tokenize(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, Tokenizer::load(*file));
  auto ids = tokenizer->encode(f.text, {!f.no_special, f.parse_special});
  if (!f.json) {
    for (std::int32_t id : ids)
      fmt::print("{:>8}  {}\n", id, to_json(json::string(tokenizer->piece(id))));
    return 0;
  }
  json::array pieces;
  for (std::int32_t id : ids) pieces.push_back(json::string(tokenizer->piece(id)));
  print_json(
      json::object{{"ids", json::array(ids.begin(), ids.end())}, {"pieces", std::move(pieces)}});
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  line.option("--text", f->text, "text to encode").required().may_be_empty();
  line.flag("--no-special", f->no_special, "add no BOS or EOS");
  line.flag("--parse-special", f->parse_special,
            "special tokens spelt in the text become those tokens");
  line.flag("--json", f->json, "print one JSON document");
  return [f] { return tokenize(*f); };
}

}  // namespace

extern const Command kCommand_tokenize;
const Command kCommand_tokenize{"tokenize", 40, "text to token ids", add};

}  // namespace vitrine
