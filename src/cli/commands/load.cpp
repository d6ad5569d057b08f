// vitrine load: a load over HTTP on a server, or on several started for the purpose, one policy
// each.
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "load/client.h"
#include "load/report.h"
#include "load/server_process.h"

namespace vitrine {
namespace {

struct Flags {
  load::LoadSpec spec;
  load::Slo slo;
  std::string url = "http://127.0.0.1:8080", api_key, model, serve;
  std::vector<std::string> policies{"continuous", "static"};
  std::vector<std::string> server_flags;
  int repeat = 3;
  bool json = false;
};

// One run against a server that is up.
Result<load::Summary> run_once(const Flags& f, const std::string& url) {
  VT_TRY(load::Target target, load::parse_url(url));
  target.api_key = f.api_key;
  target.model = f.model;
  load::LoadSpec spec = f.spec;
  if (spec.vocab == 0) {
    VT_TRY(load::ServerInfo info, load::ask_info(target));
    spec.vocab = info.vocab;
  }
  if (spec.vocab <= 0)
    return make_error(ErrorCode::kInvalid,
                      "{}/api/info does not say the size of the vocabulary; give --vocab", url);
  VT_TRY(load::LoadTrace trace, load::run_load(target, spec));
  return load::summarize(trace, f.slo);
}

Result<int> run_on_url(const Flags& f) {
  VT_TRY(load::Summary summary, run_once(f, f.url));
  if (f.json)
    print_json(json::object{
        {"url", f.url}, {"load", load::to_json(f.spec)}, {"result", load::to_json(summary)}});
  else
    fmt::print("{}: {}\n{}", f.url, load::describe(f.spec, f.slo), load::table(summary));
  return summary.ok > 0 ? 0 : 1;
}

// A server lives for one run, so that nothing is left of the run before; the policies take turns.
Result<load::Summary> run_policy(const Flags& f, const std::string& policy) {
  std::vector<std::string> command{"/proc/self/exe", "serve", f.serve, "--port", "0",
                                   "--policy",       policy};
  command.insert(command.end(), f.server_flags.begin(), f.server_flags.end());
  VT_TRY(auto server, load::ServerProcess::start(command));
  VT_TRY(load::Summary summary, run_once(f, server->url()));
  VT_RETURN_IF_ERROR(server->stop());
  return summary;
}

Result<int> compare_policies(const Flags& f) {
  std::vector<load::Column> columns;
  for (const std::string& policy : f.policies) columns.push_back({policy, {}});
  int ok = 0;
  for (int i = 0; i < f.repeat; ++i)
    for (load::Column& column : columns) {
      VT_TRY(load::Summary summary, run_policy(f, column.name));
      fmt::print(stderr, "run {} of {}, {}: {:.1f} tok/s\n", i + 1, f.repeat, column.name,
                 summary.output_tok_s);
      ok += summary.ok;
      column.runs.push_back(std::move(summary));
    }
  if (f.json) {
    json::object out = load::comparison_json(columns);
    out["model"] = f.serve;
    out["load"] = load::to_json(f.spec);
    out["repeat"] = f.repeat;
    print_json(out);
  } else {
    fmt::print("{}: {}medians of {} runs, in turns\n\n{}", f.serve, load::describe(f.spec, f.slo),
               f.repeat, load::comparison_table(columns));
  }
  return ok > 0 ? 0 : 1;
}

void add_length(const CommandLine& line, const std::string& name, load::LengthSpec& spec) {
  line.option("--" + name + "-mean", spec.mean, {1.0, 1e6}, "mean " + name + " length in tokens")
      .show_default();
  line.option("--" + name + "-cv", spec.cv, {0.0, 10.0},
              "its coefficient of variation (lognormal); 0: all alike")
      .show_default();
  line.option("--" + name + "-max", spec.max, {1, 1 << 20},
              "longest; default: eight times the mean");
}

void add_load(const CommandLine& line, load::LoadSpec& spec) {
  Option rate = line.option("--rate", spec.rate, {1e-3, 1e6},
                            "open loop: requests a second, Poisson arrivals");
  line.option("--concurrency", spec.concurrency, {1, 10000}, "closed loop: requests in flight")
      .show_default()
      .excludes(rate);
  line.option("--requests", spec.requests, {0, 10000000},
              "requests to measure; 0: as many as --duration has. A multiple of the batch "
              "is fair to static batching, whose last batch waits to be full")
      .show_default();
  line.option("--duration", spec.duration_s, {0.001, 1e6}, "no new request after so many seconds");
  line.option("--warmup", spec.warmup, {0, 100000}, "requests before those");
  add_length(line, "prompt", spec.prompt);
  add_length(line, "output", spec.output);
  line.option("--shared-prefix", spec.shared_prefix, {0.0, 1.0},
              "share of each prompt that is common to all, 0 to 1");
  line.option("--seed", spec.seed, {0, UINT64_MAX}, "the same seed is the same load")
      .show_default();
  line.option("--vocab", spec.vocab, {1, 1 << 24},
              "prompt ids are below it; default: asked of the server");
  line.option("--connections", spec.max_connections, {1, 10000}, "open at once, at most")
      .show_default();
  line.option("--slow-readers", spec.slow_readers, {0, 1000},
              "clients beside these that read a byte a second; not in the figures");
  line.option("--slow-tokens", spec.slow_tokens, {1, 1 << 20}, "length of the answers they ask for")
      .show_default();
  line.option("--timeout", spec.timeout_s, {0.01, 1e5}, "seconds to wait for one answer")
      .show_default();
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  Option url = line.option("--url", f->url, "the server").show_default();
  line.option("--api-key", f->api_key, "sent as a bearer token");
  line.option("--model", f->model, "name of the model to ask for; default: none");
  add_load(line, f->spec);
  line.option("--slo-ttft-ms", f->slo.ttft_ms, {0.0, 1e9},
              "goodput: time to first token within this");
  line.option("--slo-tpot-ms", f->slo.tpot_ms, {0.0, 1e9},
              "goodput: time per further token within this");
  Option serve =
      line.option("--serve", f->serve, "start a server for this model per policy and compare")
          .excludes(url);
  line.option("--policies", f->policies, policy_names(), "the policies to compare")
      .comma_separated()
      .show_default()
      .needs(serve);
  line.option("--repeat", f->repeat, {1, 100}, "runs of each policy; medians are reported")
      .show_default()
      .needs(serve);
  line.option("flags", f->server_flags, "after --: flags of `vitrine serve`").needs(serve);
  line.flag("--json", f->json, "print one JSON document");
  return [f, count = line.get("--requests")]() -> Result<int> {
    load::LoadSpec& spec = f->spec;
    if (spec.duration_s > 0 && !count.given()) spec.requests = 0;
    if (spec.duration_s == 0 && spec.requests == 0)
      return make_error(ErrorCode::kInvalid, "--requests: found 0, which needs --duration");
    return f->serve.empty() ? run_on_url(*f) : compare_policies(*f);
  };
}

}  // namespace

extern const Command kCommand_load;
const Command kCommand_load{"load", 70, "a load over HTTP on a server: rates and latencies", add};

}  // namespace vitrine
