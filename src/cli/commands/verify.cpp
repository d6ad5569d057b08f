// vitrine verify: whether this machine keeps what the engine promises, with this model: requests of all kinds alone and
// under all that may happen around them (src/verify). Exit 1 where it does not.
#include <unistd.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/verification.h"
#include "engine/planning.h"
#include "grammar/compiler.h"
#include "tokenizer/constraint_source.h"
#include "verify/verify.h"

namespace vitrine {
namespace {

constexpr int kLeastCases = 16, kContextPages = 16;

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  verify::Options options;
  int one = 0;
  Option one_option;
  std::vector<std::pair<const char*, Option>> chosen;  // by the conditions
  bool json = false;
};

// A line that replaces itself, on a terminal only.
class ProgressLine {
 public:
  void operator()(const verify::Progress& p) {
    const auto now = Clock::now();
    if (!show_ || (now - shown_ < std::chrono::milliseconds(100) && p.done < p.all)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double left = seconds * static_cast<double>(p.all - p.done) / static_cast<double>(p.done);
    fmt::print(stderr, "\r\033[K{}: {} of {} answers, about {:.0f} s left", p.condition, p.done,
               p.all, left);
    std::fflush(stderr);
  }
  void end() const {
    if (show_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool show_ = isatty(STDERR_FILENO) != 0;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

// What decides about a case, as flags.
std::string replay_of(const Flags& f) {
  const EngineOptions plain, &o = f.engine.options;
  std::string out = "vitrine verify " + f.model.path;
  const auto add = [&](const char* flag, const auto& value, const auto& usual) {
    if (value != usual) out += fmt::format(" {} {}", flag, value);
  };
  add("--seed", f.options.seed, verify::Options().seed);
  add("--cases", f.options.cases, verify::Options().cases);
  add("--max-tokens", f.options.room.max_tokens, 0);
  add("--backend", o.backend, plain.backend);
  add("--device", o.device, plain.device);
  add("--threads", o.threads, plain.threads);
  add("--isa", o.isa, plain.isa);
  add("--ctx", o.context, plain.context);
  add("--step-tokens", o.step_tokens, plain.step_tokens);
  add("--page-size", o.page_size, plain.page_size);
  add("--kv-type", f.engine.kv_type, EngineFlags().kv_type);
  add("--spec-tokens", o.spec_tokens, plain.spec_tokens);
  add("--spec-mib", o.spec_mib, plain.spec_mib);
  if (!f.engine.draft.path.empty()) out += " --draft " + f.engine.draft.path;
  if (o.deterministic) out += " --deterministic";
  return out;
}

// The context that cases need, unless it is given: so short that a few requests fill a pool.
Status measure(const ModelFile& file, const EngineOptions& asked, verify::CaseRoom& room) {
  EngineOptions options = asked;
  options.sequences = 1, options.kv_tokens = 0, options.spec = SpecMode::kOff;
  VT_RETURN_IF_ERROR(check_options(options));
  options.threads = 1;  // nothing is computed
  VT_TRY(auto backend, create_backend(options.backend, backend_options(options)));
  ModelInfo info;
  VT_TRY(MemoryPlan plan, plan_memory(file, *backend, options, &info));
  room.context = plan.context;
  if (asked.context == 0) room.context = std::min(plan.context, kContextPages * asked.page_size);
  room.vocab = info.vocab;
  room.page_size = asked.page_size;
  room.chunk = verify::kChunk;
  return Ok{};
}

Status add_texts(const ModelFile& file, verify::CaseRoom& room) {
  VT_TRY(auto tokenizer, load_tokenizer(file));
  if (!tokenizer) return Ok{};
  for (const std::int32_t id : tokenizer->encode(verify::sample_text(), {.add_special = false}))
    if (id < room.vocab) room.text.push_back(id);
  const ConstraintSource source;
  for (const ConstraintSpec& spec : verify::sample_constraints()) {
    auto made = source.compile(tokenizer.get(), spec);
    if (!made.ok() && made.error().code == ErrorCode::kUnsupported) return Ok{};  // none here
    if (!made.ok()) return made.error();
    room.constraints.push_back(std::move(*made));
  }
  return Ok{};
}

Result<int> run_verify(Flags& f) {
  for (const auto& [name, option] : f.chosen)
    if (option.given())
      return make_error(ErrorCode::kInvalid, "{}: every condition has its own; allowed is none",
                        name);
  VT_TRY(auto file, f.model.open());
  const std::string replay = replay_of(f);
  verify::Options& o = f.options;
  // With the draft model that is given or built in, for the conditions that want one.
  f.engine.spec = spec_mode_name(SpecMode::kAuto);
  VT_TRY(o.engine, f.engine.resolve(*file));
  o.engine.spec = SpecMode::kOff;
  if (f.one_option.given()) o.one = f.one;
  VT_RETURN_IF_ERROR(measure(*file, o.engine, o.room));
  if (o.room.max_tokens == 0)
    o.room.max_tokens =
        std::clamp(o.room.context - 2 * o.room.page_size, 1, std::clamp(o.room.context / 4, 1, 48));
  VT_RETURN_IF_ERROR(add_texts(*file, o.room));
  ProgressLine progress;
  o.progress = [&](const verify::Progress& p) { progress(p); };
  auto report = verify::verify(file, o);
  progress.end();
  if (!report.ok()) return report.error();
  if (f.json)
    print_json(report_json(*report, replay));
  else
    fmt::print("{}", report_text(*report, replay));
  return exit_code(*report);
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  Choices names;
  for (const verify::Condition& c : verify::all_conditions()) names.emplace_back(c.name);
  names.emplace_back(verify::kDrawn);
  line.option("--cases", f->options.cases, {kLeastCases, 10000}, "requests to ask").show_default();
  line.option("--seed", f->options.seed, {0, UINT64_MAX}, "what the requests are made from")
      .show_default();
  line.option("--max-tokens", f->options.room.max_tokens, {1, 1 << 20},
              "of an answer; default: 48, or a quarter of the context");
  line.option("--only", f->options.only, names, "try only this; may be given several times")
      .repeated();
  f->one_option = line.option("--case", f->one, {0, 9999},
                              "compare only this request, among the same neighbours as before");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  line.get("--ctx").description("context in tokens; default: 16 pages, at most the model's");
  for (const char* name : {"--sequences", "--kv-tokens", "--spec"}) {
    f->chosen.emplace_back(name, line.get(name));
    line.get(name).description("not here: every condition has its own");
  }
  return [f] { return run_verify(*f); };
}

}  // namespace

extern const Command kCommand_verify;
const Command kCommand_verify{
    "verify", 66, "whether answers are the same here, whatever happens around them", add};

}  // namespace vitrine
