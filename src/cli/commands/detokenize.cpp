// vitrine detokenize: ids to text.
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  std::string ids;
  bool skip_special = false, json = false;
};

Result<int> detokenize(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, Tokenizer::load(*file));
  VT_TRY(auto ids, parse_ids(f.ids, "--ids"));
  for (std::int32_t id : ids)
    if (id < 0 || id >= tokenizer->vocab_size())
      return make_error(ErrorCode::kInvalid, "--ids: found {}, allowed 0 to {}", id,
                        tokenizer->vocab_size() - 1);
  std::string text = tokenizer->decode(ids, f.skip_special);
  if (f.json)
    print_json(json::object{{"text", text}});
  else
    fmt::print("{}\n", text);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  line.option("--ids", f->ids, "token ids: 5,6,7").required();
  line.flag("--skip-special", f->skip_special, "leave special tokens out");
  line.flag("--json", f->json, "print one JSON document");
  return [f] { return detokenize(*f); };
}

}  // namespace

extern const Command kCommand_detokenize;
const Command kCommand_detokenize{"detokenize", 41, "token ids to text", add};

}  // namespace vitrine
