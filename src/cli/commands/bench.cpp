// vitrine bench: prefill and decode speed through the engine, with the machine's own peaks measured
// in the same run, so that a figure can be read as a share of what is possible.
#include <algorithm>
#include <chrono>

#include "base/mapped_file.h"
#include "cli/bench_run.h"
#include "cli/bench_simulated.h"
#include "cli/bench_spec.h"
#include "cli/bench_tokenizer.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "formats/random_model.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  std::string random, text;
  EngineFlags engine;
  std::vector<std::string> prompt_files;
  double temperature = 0;
  int prompt = 512, tokens = 64, repeat = 3;
  std::optional<double> acceptance;
  KnownTexts texts;  // that guesses are simulated from
  bool json = false, ops = false;
};

void print_ops(const std::vector<OpRow>& rows) {
  double prefill = 0, decode = 0;
  for (const OpRow& r : rows) prefill += r.prefill, decode += r.decode;
  fmt::print("\n{:<16} {:>20}   {:>20}\n", "op", "a prompt, ms", "a decode step, ms");
  for (const OpRow& r : rows)
    fmt::print("{:<16} {:>12.2f} {:>5.1f} %   {:>12.2f} {:>5.1f} %\n", r.op, 1e3 * r.prefill,
               prefill > 0 ? 100 * r.prefill / prefill : 0, 1e3 * r.decode,
               decode > 0 ? 100 * r.decode / decode : 0);
}

// Refuses what cannot be measured; sets the context that the run needs.
Status check(Flags& f) {
  EngineOptions& options = f.engine.options;
  if (f.engine.options.spec_always && !f.acceptance)
    return make_error(ErrorCode::kInvalid,
                      "--spec-always: found without --spec, --draft or --spec-acceptance");
  if (f.acceptance) {
    if (f.engine.spec != "off")
      return make_error(ErrorCode::kInvalid,
                        "--spec: found {} beside --spec-acceptance, whose guesses are simulated; "
                        "allowed: off",
                        f.engine.spec);
    f.engine.spec = spec_mode_name(SpecMode::kSuffix);
    options.spec_source = [&f] {
      return std::make_unique<SimulatedSource>(f.texts, *f.acceptance);
    };
  }
  int needed = f.prompt + f.tokens;
  if (options.context == 0) options.context = needed;
  if (options.context < needed)
    return make_error(ErrorCode::kInvalid,
                      "--ctx: found {}, {} prompt and {} output tokens need {}", options.context,
                      f.prompt, f.tokens, needed);
  // The records of a run must be there at its end.
  if (static_cast<std::int64_t>(options.sequences) * f.prompt >
      static_cast<std::int64_t>(options.step_tokens) * (kKeptRecords - f.tokens) / 2)
    return make_error(ErrorCode::kInvalid,
                      "{} prompts of {} tokens are too many to measure; fewer --sequences, fewer "
                      "-p or more --step-tokens",
                      options.sequences, f.prompt);
  return Ok{};
}

// What is reported: medians over the runs, the best peaks.
struct Report {
  double load_s = 0;
  double prefill_tok_s = 0, prefill_gflop_s = 0, decode_tok_s = 0, decode_gb_s = 0;
  double host_us = 0, idle_share = 0;
  BenchRun last;
  Peak peak;
  std::vector<OpRow> ops;
  std::optional<SpeculationFigures> speculation;
};

Result<Report> measure(Engine& engine, Flags& f) {
  VT_TRY(BenchRun warm, bench_run(engine, f.prompt, f.tokens));
  Report report;
  std::vector<BenchRun> runs;
  for (int i = 0; i < f.repeat; ++i) {
    VT_TRY(Peak peak, engine.measure_peak());
    report.peak.read_gb_s = std::max(report.peak.read_gb_s, peak.read_gb_s);
    report.peak.gflop_s = std::max(report.peak.gflop_s, peak.gflop_s);
    VT_TRY(BenchRun run, bench_run(engine, f.prompt, f.tokens));
    runs.push_back(std::move(run));
  }
  report.last = runs.back();
  if (engine.info().exact && report.last.hash != warm.hash)
    return make_error(ErrorCode::kInvalid, "two runs gave different logits: {:016x} and {:016x}",
                      warm.hash, report.last.hash);
  auto over_runs = [&](double BenchRun::*figure) {
    std::vector<double> values;
    for (const BenchRun& run : runs) values.push_back(run.*figure);
    return median(std::move(values));
  };
  report.prefill_tok_s = over_runs(&BenchRun::prefill_tok_s);
  report.prefill_gflop_s = over_runs(&BenchRun::prefill_gflop_s);
  report.decode_tok_s = over_runs(&BenchRun::decode_tok_s);
  report.decode_gb_s = over_runs(&BenchRun::decode_gb_s);
  report.host_us = over_runs(&BenchRun::host_us);
  report.idle_share = over_runs(&BenchRun::idle_share);
  if (f.ops) {
    engine.time_ops(true);
    VT_TRY(BenchRun timed, bench_run(engine, f.prompt, f.tokens));
    engine.time_ops(false);
    report.ops = std::move(timed.ops);
  }
  if (f.acceptance) {
    VT_TRY(report.speculation, bench_simulated(engine, f.texts, f.prompt, f.tokens, f.repeat));
  }
  return report;
}

json::value to_document(const Engine& engine, const Flags& f, const Report& r) {
  json::array ops;
  for (const OpRow& row : r.ops)
    ops.push_back(json::object{
        {"op", row.op}, {"prompt_ms", 1e3 * row.prefill}, {"decode_step_ms", 1e3 * row.decode}});
  json::object out{
      {"backend", engine.info().backend_description},
      {"sequences", engine.memory().sequences},
      {"load_s", r.load_s},
      {"prefill", json::object{{"tokens", f.prompt},
                               {"tok_s", r.prefill_tok_s},
                               {"gflop_s", r.prefill_gflop_s},
                               {"share_of_peak", r.prefill_gflop_s / r.peak.gflop_s}}},
      {"decode", json::object{{"tokens", f.tokens},
                              {"tok_s", r.decode_tok_s},
                              {"gb_s", r.decode_gb_s},
                              {"share_of_peak", r.decode_gb_s / r.peak.read_gb_s},
                              {"host_us_per_step", r.host_us},
                              {"device_idle_share", r.idle_share}}},
      {"peak", json::object{{"read_gb_s", r.peak.read_gb_s}, {"gflop_s", r.peak.gflop_s}}},
      {"ops", std::move(ops)},
      {"repeat", f.repeat},
      {"logits_hash", fmt::format("{:016x}", r.last.hash)}};
  if (const auto& s = r.speculation)
    out["speculation"] = json::object{{"simulated", true},
                                      {"acceptance", *f.acceptance},
                                      {"spec_tokens", f.engine.options.spec_tokens},
                                      {"always", f.engine.options.spec_always},
                                      {"off_tok_s", s->off_tok_s},
                                      {"on_tok_s", s->on_tok_s},
                                      {"ratio", s->ratio},
                                      {"guesses_per_step", s->guesses_per_step},
                                      {"tokens_per_step", s->tokens_per_step},
                                      {"right_share", s->right},
                                      {"same_tokens_share", s->same_tokens},
                                      {"device_idle_share", s->idle_share}};
  return out;
}

void print_speculation(const Flags& f, const SpeculationFigures& s, bool queues) {
  fmt::print(
      "\nspeculation, simulated: guesses are right with probability {:.2f}, {}{} for a "
      "sequence and step\n"
      "off {:.1f} tok/s, on {:.1f} tok/s: {:.2f} x (medians of {} pairs)\n"
      "a sequence and step: {:.2f} guesses, {:.2f} tokens\n"
      "{:.1f} % of the guesses tried were right; {:.1f} % of the tokens are those without\n",
      *f.acceptance, f.engine.options.spec_always ? "" : "at most ", f.engine.options.spec_tokens,
      s.off_tok_s, s.on_tok_s, s.ratio, f.repeat, s.guesses_per_step, s.tokens_per_step,
      100 * s.right, 100 * s.same_tokens);
  if (queues) fmt::print("the device idle {:.1f} % of the time with it\n", 100 * s.idle_share);
}

void print_report(const Engine& engine, const Flags& f, const Report& r) {
  bool queues = engine.info().queues_steps;
  int sequences = engine.memory().sequences;
  fmt::print(
      "{}\nloaded in {:.2f} s; {} sequence{}, medians of {} runs; peaks measured between them\n\n",
      engine.info().backend_description, r.load_s, sequences, sequences == 1 ? "" : "s", f.repeat);
  fmt::print("            tokens        tok/s                  of the peak\n");
  fmt::print("prefill   {:>8} {:>12.1f}  {:>8.1f} GFLOP/s  {:>8.1f} %  of {:.1f}\n", f.prompt,
             r.prefill_tok_s, r.prefill_gflop_s, 100 * r.prefill_gflop_s / r.peak.gflop_s,
             r.peak.gflop_s);
  fmt::print("decode    {:>8} {:>12.1f}  {:>8.2f} GB/s     {:>8.1f} %  of {:.1f}\n", f.tokens,
             r.decode_tok_s, r.decode_gb_s, 100 * r.decode_gb_s / r.peak.read_gb_s,
             r.peak.read_gb_s);
  fmt::print(
      "\na decode step: {:.1f} us of the engine's thread (plan {:.1f}, {} {:.1f}, {} {:.1f}, "
      "commit {:.1f})",
      r.host_us, r.last.plan_us, queues ? "launch" : "compute", r.last.launch_us,
      queues ? "results" : "head and draw", r.last.results_us, r.last.commit_us);
  if (queues) fmt::print(", the device idle {:.2f} %", 100 * r.idle_share);
  fmt::print("\n");
  if (f.ops) print_ops(r.ops);
  if (r.speculation) print_speculation(f, *r.speculation, queues);
  fmt::print("\nlogits {:016x}\n", r.last.hash);
}

// With --spec: pairs of runs with guesses and without.
constexpr const char* kPrompts[] = {
    "<|im_start|>user\nTell me a story about a fox.<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nWhat is attention?<|im_end|>\n<|im_start|>assistant\n",
    "The King of France",
    "It was a cold night, and the old man",
};

Result<SpecBench> spec_bench(const Flags& f, const ModelFile& file) {
  SpecBench out;
  out.tokens = f.tokens, out.pairs = f.repeat;
  out.sequences = std::max(1, f.engine.options.sequences);
  VT_RETURN_IF_ERROR(out.sampling.set("temperature", f.temperature));
  VT_TRY(auto tokenizer, load_tokenizer(file));
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kNotFound,
                      "bench --spec: {} has no tokenizer, so there is no text to guess in",
                      file.path());
  for (const std::string& path : f.prompt_files) {
    VT_TRY(MappedFile text, MappedFile::open(path));
    out.prompts.push_back(tokenizer->encode(text.text(), {.parse_special = true}));
    if (out.prompts.back().empty())
      return make_error(ErrorCode::kInvalid, "{}: has no token", path);
  }
  if (f.prompt_files.empty())
    for (const char* prompt : kPrompts)
      out.prompts.push_back(tokenizer->encode(prompt, {.parse_special = true}));
  return out;
}

Result<int> bench_pairs(Flags& f, const std::shared_ptr<const ModelFile>& file) {
  VT_TRY(SpecBench bench, spec_bench(f, *file));
  std::size_t longest = 0;
  for (const auto& prompt : bench.prompts) longest = std::max(longest, prompt.size());
  if (f.engine.options.context == 0)
    f.engine.options.context = static_cast<int>(longest) + bench.tokens;
  VT_TRY(auto engine, f.engine.start(file));
  if (engine->options().spec == SpecMode::kOff)
    return make_error(ErrorCode::kUnsupported, "bench --spec: {} does not speculate",
                      engine->info().backend_description);
  VT_TRY(SpecReport report, bench_spec(*engine, bench));
  if (f.json)
    print_json(spec_json(*engine, bench, report));
  else
    print_spec(*engine, bench, report);
  return 0;
}

Result<int> bench(Flags& f) {
  VT_TRY(auto file, f.random.empty() ? f.model.open() : random_model(f.random));
  if (!f.text.empty()) {
    VT_RETURN_IF_ERROR(bench_tokenizer(*file, f.text, f.repeat, f.json));
    return 0;
  }
  if (f.engine.speculates() && !f.acceptance) return bench_pairs(f, file);
  VT_RETURN_IF_ERROR(check(f));
  auto begin = std::chrono::steady_clock::now();
  VT_TRY(auto engine, f.engine.start(file));
  double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (f.ops && engine->info().queues_steps && !f.engine.options.synchronous)
    return make_error(
        ErrorCode::kInvalid,
        "--ops: {} queues its ops and does not wait for them; with --sync-ops it does, "
        "and they can be timed",
        engine->info().backend_description);
  VT_TRY(Report report, measure(*engine, f));
  report.load_s = load_s;
  if (f.json)
    print_json(to_document(*engine, f, report));
  else
    print_report(*engine, f, report);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  CommandLine which = line.group("Model", "", 1, 1);
  f->model.add(which);
  which.get("model").required(false);
  which.option("--random", f->random,
               fmt::format("instead of a model, random weights in memory: SHAPE:TYPE; shapes "
                           "{}; types {}",
                           random_model_shapes(), random_model_types()));
  line.option("--tokenizer", f->text,
              "instead of the model, the speed of its tokenizer on this text file");
  line.option("-p,--prompt-tokens", f->prompt, {1, 1 << 20}, "tokens to prefill").show_default();
  line.option("-n,--max-tokens", f->tokens, {1, 1000}, "tokens to decode").show_default();
  line.option("-r,--repeat", f->repeat, {1, 100}, "runs; the median is reported").show_default();
  line.option(
          "--prompt-file", f->prompt_files,
          "with --spec or --draft, which compare runs with guesses and without: the prompt; may "
          "be given several times; default: a few of our own")
      .repeated();
  line.option("--temperature", f->temperature, {0.0, 100.0}, "with --spec or --draft")
      .show_default();
  line.option(
      "--spec-acceptance", f->acceptance, {0, 1},
      "also the speed with speculation, on simulated guesses: each of up to --spec-tokens is "
      "right with this probability");
  line.flag("--spec-always", f->engine.options.spec_always,
            "with --spec, --draft or --spec-acceptance: all guesses are computed, whether they are "
            "worth it or not");
  line.flag("--ops", f->ops, "also where the time goes, op by op");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return bench(*f); };
}

}  // namespace

extern const Command kCommand_bench;
const Command kCommand_bench{"bench", 60, "speed, and its share of what the machine can do", add};

}  // namespace vitrine
