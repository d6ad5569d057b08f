#include "server/answer/metrics_text.h"

namespace vitrine {
namespace {

std::string escape_label(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

class Page {
 public:
  explicit Page(const std::string& model) : model_(escape_label(model)) {}

  void counter(const char* name, const char* help, double value) {
    head(name, "counter", help);
    sample(name, "", value);
  }
  void gauge(const char* name, const char* help, double value) {
    head(name, "gauge", help);
    sample(name, "", value);
  }
  void histogram(const char* name, const char* help, const Histogram& h) {
    head(name, "histogram", help);
    std::string bucket = std::string(name) + "_bucket";
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < h.bounds().size(); ++i) {
      below += h.counts()[i];
      sample(bucket, fmt::format(",le=\"{}\"", h.bounds()[i]), static_cast<double>(below));
    }
    sample(bucket, ",le=\"+Inf\"", static_cast<double>(h.count()));
    sample(std::string(name) + "_sum", "", h.sum());
    sample(std::string(name) + "_count", "", static_cast<double>(h.count()));
  }
  void head(const char* name, const char* type, const char* help) {
    out_ += fmt::format("# HELP vitrine:{} {}\n# TYPE vitrine:{} {}\n", name, help, name, type);
  }
  void sample(std::string_view name, std::string_view labels, double value) {
    out_ += fmt::format("vitrine:{}{{model_name=\"{}\"{}}} {}\n", name, model_, labels, value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string model_, out_;
};

void add_histograms(Page& page, const Metrics& m) {
  page.histogram("time_to_first_token_seconds", "From submission to the first token.",
                 m.time_to_first_token);
  page.histogram("inter_token_latency_seconds", "Between two tokens of a sequence.",
                 m.inter_token_latency);
  page.histogram("e2e_request_latency_seconds", "From submission to the end.", m.e2e_latency);
  page.histogram("request_queue_time_seconds", "From submission to the first step.", m.queue_time);
  page.histogram("request_prefill_time_seconds", "In steps that computed the prompt.",
                 m.prefill_time);
  page.histogram("request_decode_time_seconds", "In steps that made tokens.", m.decode_time);
  page.histogram("request_prompt_tokens", "Tokens of a request's prompt.", m.prompt_length);
  page.histogram("request_generation_tokens", "Tokens that a request made.", m.generation_length);
  page.histogram("iteration_tokens_total", "Tokens of a step.", m.step_tokens);
}

void add_guesses(Page& page, const Metrics& m) {
  page.gauge("spec_decode_active",
             "1 while most steps carry guesses, 0 where they would lose time.",
             m.speculates ? 1 : 0);
  const auto each = [&](const char* name, const char* type, const char* help, auto value) {
    page.head(name, type, help);
    for (int i = 0; i < kGuessSources; ++i) {
      const Metrics::Guesses& g = m.by_source[i];
      if (g.drafts > 0 || g.seconds > 0)
        page.sample(name,
                    fmt::format(",source=\"{}\"", guess_source_name(static_cast<GuessSource>(i))),
                    static_cast<double>(value(g)));
    }
  };
  using Guesses = Metrics::Guesses;
  each("spec_decode_source_drafts_total", "counter",
       "Sequences with guesses of the source, by step.", [](const Guesses& g) { return g.drafts; });
  each("spec_decode_source_draft_tokens_total", "counter", "Guesses of the source computed.",
       [](const Guesses& g) { return g.drafted; });
  each("spec_decode_source_accepted_tokens_total", "counter", "Of these, those that were drawn.",
       [](const Guesses& g) { return g.accepted; });
  each("spec_decode_source_draft_seconds_total", "counter", "Making the guesses.",
       [](const Guesses& g) { return g.seconds; });
  each("spec_decode_source_lost_seconds", "gauge",
       "Lost against the same tokens without guesses; below 0: won.",
       [](const Guesses& g) { return g.lost_seconds; });
}

void add_counters(Page& page, const Metrics& m) {
  auto count = [&](const char* name, const char* help, std::uint64_t n) {
    page.counter(name, help, static_cast<double>(n));
  };
  count("prompt_tokens_total", "Prompt tokens, cached ones included.", m.prompt_tokens);
  count("prompt_tokens_cached_total", "Prompt tokens that the cache had.", m.cached_tokens);
  count("generation_tokens_total", "Tokens made.", m.generation_tokens);
  count("recomputed_tokens_total", "Tokens computed again after preemptions.", m.recomputed_tokens);
  count("prefix_cache_queries_total", "Tokens that the prefix cache was asked for.",
        m.prefix_queries);
  count("prefix_cache_hits_total", "Tokens that the prefix cache had.", m.prefix_hits);
  count("num_preemptions_total", "Sequences preempted: their pages were freed.", m.preemptions);
  count("cache_evictions_total", "Cached pages evicted.", m.evictions);
  count("requests_rejected_total", "Requests refused because the queue was full.", m.rejected);
  count("spec_decode_num_drafts_total", "Sequences with guesses, by step.", m.drafts);
  count("spec_decode_num_draft_tokens_total", "Guesses computed.", m.drafted_tokens);
  std::uint64_t accepted = 0;
  for (const std::uint64_t n : m.accepted_by_place) accepted += n;
  count("spec_decode_num_accepted_tokens_total", "Guesses that were drawn.", accepted);
  page.head("spec_decode_num_accepted_tokens_per_pos_total", "counter",
            "Guesses that were drawn, by their place in the draft.");
  for (std::size_t i = 0; i < m.accepted_by_place.size(); ++i)
    page.sample("spec_decode_num_accepted_tokens_per_pos_total", fmt::format(",position=\"{}\"", i),
                static_cast<double>(m.accepted_by_place[i]));
  add_guesses(page, m);
  count("steps_total", "Steps of the engine.", m.steps);
  page.counter("busy_seconds_total", "Time in steps.", m.busy_seconds);
  page.counter("prefix_cache_seconds_total", "Of it, hashing and looking up prefixes.",
               m.prefix_seconds);
  page.head("request_success_total", "counter", "Sequences that ended, by reason.");
  for (int i = 0; i < kFinishReasons; ++i)
    page.sample(
        "request_success_total",
        fmt::format(",finished_reason=\"{}\"", finish_reason_name(static_cast<FinishReason>(i))),
        static_cast<double>(m.finished[i]));
}

}  // namespace

std::string metrics_text(const Metrics& m, const HttpCounts& http, const std::string& model_name) {
  Page page(model_name);
  page.gauge("num_requests_running", "Sequences that run.", m.running);
  page.gauge("num_requests_waiting", "Sequences that wait.", m.waiting);
  page.gauge("kv_cache_usage_perc", "Share of KV pages in use, 0 to 1.", m.kv_usage);
  add_counters(page, m);
  add_histograms(page, m);
  page.gauge("http_connections", "Open connections.", http.connections);
  page.counter("http_connections_accepted_total", "Connections accepted.",
               static_cast<double>(http.accepted));
  page.counter("http_connections_refused_total", "Connections refused over the limit.",
               static_cast<double>(http.refused));
  page.counter("http_connections_refused_by_address_total",
               "Of those, because their address has too many.",
               static_cast<double>(http.refused_by_address));
  page.gauge("http_body_bytes", "Bytes of bodies of requests in work.",
             static_cast<double>(http.body_bytes));
  page.gauge("http_answer_bytes", "Bytes of answers that are not sent yet.",
             static_cast<double>(http.answer_bytes));
  page.counter("http_requests_total", "HTTP requests.", static_cast<double>(http.requests));
  return page.take();
}

}  // namespace vitrine
