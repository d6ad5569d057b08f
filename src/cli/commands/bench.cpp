// vitrine bench: prefill and decode speed through the engine, with the machine's own peaks measured
// in the same run, so that a figure can be read as a share of what is possible.
#include <algorithm>
#include <chrono>
#include <cstring>

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
  int prompt = 512, tokens = 64, repeat = 3;
  bool json = false, ops = false;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// FNV-1a over the bits of a row of logits.
std::uint64_t hash_logits(const std::vector<float>& row) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (float x : row) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 255)) * 0x100000001b3;
  }
  return hash;
}

// Seconds of an op in a prompt and in a decode step.
struct OpRow {
  const char* op;
  double prefill = 0, decode = 0;
};

struct Run {
  double prefill_tok_s, prefill_gflop_s, decode_tok_s, decode_gb_s;
  // Of a decode step: the engine thread's time, in all and by what it does, medians of the steps
  // (some record a graph, or lose the processor); the device's idle time.
  double host_us, plan_us, launch_us, results_us, commit_us, idle_share;
  std::uint64_t hash;
  std::vector<OpRow> ops;  // if they are timed
};

// As many generations as there are sequences, side by side; figures from the step records they
// left.
Result<Run> run_once(Engine& engine, const Flags& f) {
  int vocab = engine.info().vocab, sequences = engine.memory().sequences;
  auto before = engine.records();
  std::uint64_t first = before.empty() ? 0 : before.back().step + 1;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int s = 0; s < sequences; ++s) {
    Request request;
    for (int i = 0; i < f.prompt; ++i)
      request.prompt.push_back(static_cast<std::int32_t>((i * 7919LL + s * 104729LL + 13) % vocab));
    request.max_tokens = f.tokens;
    request.ignore_eos = true;
    // Of the first only, to hash them. Nothing comes from the cache, which saw the prompts before.
    if (s == 0) request.logit_positions = {f.prompt - 1};
    request.cache_salt = fmt::format("{}.{}", first, s);
    VT_RETURN_IF_ERROR(request.sampling.set("temperature", 0));
    VT_TRY(auto stream, engine.submit(std::move(request)));
    streams.push_back(std::move(stream));
  }
  std::int64_t expected = 0;
  for (const auto& stream : streams) {
    const Finish& finish = stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "{}", finish.error);
    expected += f.prompt + finish.account.usage.completion_tokens - 1;
  }
  // The record of the last step is written just after the streams close.
  auto complete = [&] {
    std::int64_t rows = 0;
    for (const StepRecord& r : engine.records())
      if (r.step >= first) rows += r.prefill_tokens + r.decode_tokens;
    return rows >= expected;
  };
  while (!complete()) std::this_thread::yield();
  double prefill_ns = 0, prefill_tokens = 0, flops = 0, decode_ns = 0, decode_tokens = 0, bytes = 0;
  double busy_ns = 0, idle_ns = 0;
  std::vector<double> host, plan, launch, results, commit;  // us of each step
  // Requests come in one after another, so that some steps have fewer sequences than others.
  int most = 0;
  std::vector<OpRow> ops;
  auto row = [&](const char* op) -> OpRow& {
    for (OpRow& r : ops)
      if (r.op == op) return r;
    return ops.emplace_back(OpRow{op});
  };
  for (const StepRecord& r : engine.records())
    if (r.step >= first && r.prefill_tokens == 0) most = std::max(most, r.decode_tokens);
  for (const StepRecord& r : engine.records()) {
    if (r.step < first) continue;
    auto ns = static_cast<double>(r.total_ns());
    if (r.prefill_tokens > 0) {
      prefill_ns += ns, prefill_tokens += r.prefill_tokens, flops += r.flops;
      for (const OpTime& t : r.ops) row(t.op).prefill += t.seconds / sequences;
    } else if (r.decode_tokens == most) {
      decode_ns += ns, decode_tokens += r.decode_tokens;
      for (const OpTime& t : r.ops) row(t.op).decode += t.seconds;
      bytes += static_cast<double>(r.weight_bytes + r.kv_read_bytes);
      plan.push_back(1e-3 * static_cast<double>(r.plan_ns));
      launch.push_back(1e-3 * static_cast<double>(r.forward_ns));
      results.push_back(1e-3 * static_cast<double>(r.sample_ns - r.wait_ns));
      commit.push_back(1e-3 * static_cast<double>(r.commit_ns));
      host.push_back(plan.back() + launch.back() + results.back() + commit.back());
      busy_ns += static_cast<double>(r.device_ns), idle_ns += static_cast<double>(r.device_idle_ns);
    }
  }
  for (OpRow& r : ops) r.decode /= static_cast<double>(std::max<std::size_t>(1, host.size()));
  std::sort(ops.begin(), ops.end(), [](const OpRow& a, const OpRow& b) {
    return a.prefill + a.decode > b.prefill + b.decode;
  });
  const auto& logits = streams[0]->logits().at(f.prompt - 1);
  auto per = [](double sum, double by) { return by > 0 ? sum / by : 0; };
  return Run{1e9 * per(prefill_tokens, prefill_ns),
             per(flops, prefill_ns),
             1e9 * per(decode_tokens, decode_ns),
             per(bytes, decode_ns),
             median(host),
             median(plan),
             median(launch),
             median(results),
             median(commit),
             per(idle_ns, busy_ns + idle_ns),
             hash_logits(logits),
             std::move(ops)};
}

void print_ops(const std::vector<OpRow>& rows) {
  double prefill = 0, decode = 0;
  for (const OpRow& r : rows) prefill += r.prefill, decode += r.decode;
  fmt::print("\n{:<16} {:>20}   {:>20}\n", "op", "a prompt, ms", "a decode step, ms");
  for (const OpRow& r : rows)
    fmt::print("{:<16} {:>12.2f} {:>5.1f} %   {:>12.2f} {:>5.1f} %\n", r.op, 1e3 * r.prefill,
               prefill > 0 ? 100 * r.prefill / prefill : 0, 1e3 * r.decode,
               decode > 0 ? 100 * r.decode / decode : 0);
}

Result<int> bench(Flags& f) {
  VT_TRY(auto file, f.random.empty() ? f.model.open() : random_model(f.random));
  if (!f.text.empty()) {
    VT_RETURN_IF_ERROR(bench_tokenizer(*file, f.text, f.repeat, f.json));
    return 0;
  }
  int needed = f.prompt + f.tokens;
  if (f.engine.options.context == 0) f.engine.options.context = needed;
  if (f.engine.options.context < needed)
    return make_error(ErrorCode::kInvalid,
                      "--ctx: found {}, {} prompt and {} output tokens need {}",
                      f.engine.options.context, f.prompt, f.tokens, needed);
  // The records of a run must be there at its end.
  if (static_cast<std::int64_t>(f.engine.options.sequences) * f.prompt >
      static_cast<std::int64_t>(f.engine.options.step_tokens) * (kKeptRecords - f.tokens) / 2)
    return make_error(ErrorCode::kInvalid,
                      "{} prompts of {} tokens are too many to measure; fewer --sequences, fewer "
                      "-p or more --step-tokens",
                      f.engine.options.sequences, f.prompt);
  auto begin = std::chrono::steady_clock::now();
  VT_TRY(auto engine, f.engine.start(file));
  double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (f.ops && engine->info().queues_steps && !f.engine.options.synchronous)
    return make_error(
        ErrorCode::kInvalid,
        "--ops: {} queues its ops and does not wait for them; with --sync-ops it does, "
        "and they can be timed",
        engine->info().backend_description);
  std::vector<double> prefill, gflops, decode, gbs, host, idle;
  std::vector<Peak> peaks;
  std::uint64_t hash = 0;
  VT_TRY(Run warm, run_once(*engine, f));
  Run last = warm;
  for (int i = 0; i < f.repeat; ++i) {
    peaks.push_back(engine->measure_peak());
    VT_TRY(Run r, run_once(*engine, f));
    prefill.push_back(r.prefill_tok_s), gflops.push_back(r.prefill_gflop_s);
    decode.push_back(r.decode_tok_s), gbs.push_back(r.decode_gb_s);
    host.push_back(r.host_us), idle.push_back(r.idle_share);
    last = r;
    hash = r.hash;
  }
  if (engine->info().exact && hash != warm.hash)
    return make_error(ErrorCode::kInvalid, "two runs gave different logits: {:016x} and {:016x}",
                      warm.hash, hash);
  Peak peak;
  for (const Peak& p : peaks) {
    peak.read_gb_s = std::max(peak.read_gb_s, p.read_gb_s);
    peak.gflop_s = std::max(peak.gflop_s, p.gflop_s);
  }
  double p_tok = median(prefill), p_flop = median(gflops), d_tok = median(decode),
         d_gb = median(gbs);
  std::vector<OpRow> ops;
  if (f.ops) {
    engine->time_ops(true);
    VT_TRY(Run timed, run_once(*engine, f));
    engine->time_ops(false);
    ops = std::move(timed.ops);
  }
  if (f.json) {
    json::array op_times;
    for (const OpRow& r : ops)
      op_times.push_back(json::object{
          {"op", r.op}, {"prompt_ms", 1e3 * r.prefill}, {"decode_step_ms", 1e3 * r.decode}});
    print_json(json::object{
        {"backend", engine->info().backend_description},
        {"sequences", engine->memory().sequences},
        {"load_s", load_s},
        {"prefill", json::object{{"tokens", f.prompt},
                                 {"tok_s", p_tok},
                                 {"gflop_s", p_flop},
                                 {"share_of_peak", p_flop / peak.gflop_s}}},
        {"decode", json::object{{"tokens", f.tokens},
                                {"tok_s", d_tok},
                                {"gb_s", d_gb},
                                {"share_of_peak", d_gb / peak.read_gb_s},
                                {"host_us_per_step", median(host)},
                                {"device_idle_share", median(idle)}}},
        {"peak", json::object{{"read_gb_s", peak.read_gb_s}, {"gflop_s", peak.gflop_s}}},
        {"ops", op_times},
        {"repeat", f.repeat},
        {"logits_hash", fmt::format("{:016x}", hash)}});
    return 0;
  }
  fmt::print(
      "{}\nloaded in {:.2f} s; {} sequence{}, medians of {} runs; peaks measured between them\n\n",
      engine->info().backend_description, load_s, engine->memory().sequences,
      engine->memory().sequences == 1 ? "" : "s", f.repeat);
  fmt::print("            tokens        tok/s                  of the peak\n");
  fmt::print("prefill   {:>8} {:>12.1f}  {:>8.1f} GFLOP/s  {:>8.1f} %  of {:.1f}\n", f.prompt,
             p_tok, p_flop, 100 * p_flop / peak.gflop_s, peak.gflop_s);
  fmt::print("decode    {:>8} {:>12.1f}  {:>8.2f} GB/s     {:>8.1f} %  of {:.1f}\n", f.tokens,
             d_tok, d_gb, 100 * d_gb / peak.read_gb_s, peak.read_gb_s);
  fmt::print(
      "\na decode step: {:.1f} us of the engine's thread (plan {:.1f}, {} {:.1f}, {} {:.1f}, "
      "commit {:.1f})",
      median(host), last.plan_us, engine->info().queues_steps ? "launch" : "compute",
      last.launch_us, engine->info().queues_steps ? "results" : "head and draw", last.results_us,
      last.commit_us);
  if (engine->info().queues_steps) fmt::print(", the device idle {:.2f} %", 100 * median(idle));
  fmt::print("\n");
  if (f.ops) print_ops(ops);
  fmt::print("\nlogits {:016x}\n", hash);
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
  line.option("-p,--prompt-tokens", f->prompt, "tokens to prefill")
      .show_default()
      .range(1, 1 << 20);
  line.option("-n,--max-tokens", f->tokens, "tokens to decode").show_default().range(1, 1000);
  line.option("-r,--repeat", f->repeat, "runs; the median is reported")
      .show_default()
      .range(1, 100);
  line.flag("--ops", f->ops, "also where the time goes, op by op");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return bench(*f); };
}

}  // namespace

extern const Command kCommand_bench;
const Command kCommand_bench{"bench", 60, "speed, and its share of what the machine can do", add};

}  // namespace vitrine
