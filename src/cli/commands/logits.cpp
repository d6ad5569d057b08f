// vitrine logits: the logits at chosen positions of a sequence of ids.
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  std::string ids, positions;
  bool json = false;
};

Result<int> logits(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  Request request;
  VT_TRY(request.prompt, parse_ids(f.ids, "--ids"));
  if (f.positions.empty()) {
    for (std::size_t i = 0; i < request.prompt.size(); ++i)
      request.logit_positions.push_back(static_cast<int>(i));
  } else {
    VT_TRY(request.logit_positions, parse_ids(f.positions, "--positions"));
  }
  request.max_tokens = 0;
  VT_TRY(auto engine, f.engine.start(file));
  VT_TRY(auto stream, engine->submit(std::move(request)));
  const Finish& finish = stream->wait();
  if (finish.reason == FinishReason::kError)
    return make_error(ErrorCode::kInvalid, "{}", finish.error);
  if (f.json) {
    json::object rows;
    for (const auto& [position, row] : stream->logits()) {
      json::array values;
      values.reserve(row.size());
      for (float x : row) values.push_back(static_cast<double>(x));
      rows[std::to_string(position)] = std::move(values);
    }
    print_json(json::object{{"vocab", engine->info().vocab}, {"logits", std::move(rows)}});
    return 0;
  }
  for (const auto& [position, row] : stream->logits()) {
    auto best = std::max_element(row.begin(), row.end());
    fmt::print("position {}: best token {} with logit {:.6f}\n", position, best - row.begin(),
               *best);
  }
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  line.option("--ids", f->ids, "token ids: 5,6,7").required();
  line.option("--positions", f->positions, "positions: 0,2; default: all");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return logits(*f); };
}

}  // namespace

extern const Command kCommand_logits;
const Command kCommand_logits{"logits", 30, "the logits at chosen positions", add};

}  // namespace vitrine
