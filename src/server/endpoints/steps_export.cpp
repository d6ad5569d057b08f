// GET /api/steps/export?format=perfetto|vtr&seconds=N: what the engine did, as a file. For operators: it tells about
// everybody.
//
// A recording (`vtr`, docs/trace.md) has the log as it is kept; its state before that is not known, so there is no
// snapshot in it. With `seconds` it begins now, with one, and grows as a stream does.
#include "server/answer/moment_json.h"
#include "server/answer/perfetto.h"
#include "server/answer/pieces.h"
#include "server/api.h"
#include "server/request/query.h"
#include "trace/log_lines.h"

namespace vitrine {
namespace {

constexpr std::uint64_t kMostSeconds = 60;
constexpr std::size_t kMostPacked = 64 << 20;     // bytes of the log in a recording
constexpr std::size_t kMostRecorded = 256 << 20;  // bytes of a recording that grows; it ends there
constexpr std::size_t kMostEntries = 64 << 10;    // of all steps in a trace for Perfetto
constexpr const char* kRecordingType = "application/x-ndjson";

Headers file_headers(const char* name) {
  return {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"", name)}};
}

void append_line(std::string& out, std::string_view event, const json::object& fields) {
  fmt::format_to(std::back_inserter(out), "{{\"event\":\"{}\",", event);
  out += std::string_view(to_json(fields)).substr(1);
  out += '\n';
}

Reply perfetto(const Engine& engine) {
  std::map<std::uint64_t, std::string> names;
  for (const Account& a : engine.accounts()) names[a.id] = a.label;
  const Snapshot now = engine.snapshot();
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list) names[s.account.id] = s.account.label;
  const std::vector<StepRecord> steps = engine.steps_since(0);
  auto first = steps.end();
  for (std::size_t entries = 0; first != steps.begin(); --first)
    if ((entries += std::prev(first)->entries.size()) > kMostEntries) break;
  Reply out(to_json(perfetto_json({first, steps.end()}, names)));
  out.headers = file_headers("vitrine-steps.json");
  return out;
}

Reply kept(const Api& api, const HttpRequest& http) {
  const StepLog& log = api.engine->log();
  Reply out((std::string()));
  append_line(out.body, "hello", hello_json(*api.engine, api.model_name, http));
  const auto lines = std::make_shared<LogLines>(log, newest_events(log, kMostPacked));
  out.content_type = kRecordingType;
  out.headers = file_headers("vitrine.vtr");
  out.held = 2 * kPieceBytes;
  out.more = [lines, last = log.last_seq()](std::string& piece) {
    const std::uint64_t before = lines->told();
    const std::uint64_t lost = lines->more(piece, last, kPieceBytes);
    if (lost > 0) append_gap_line(piece, lines->told() - lost, lines->told());
    return lines->told() > before && lines->told() < last;
  };
  return out;
}

class Recorder {
 public:
  Recorder(Api& api, Exchange& exchange, std::unique_ptr<TraceHub::Stream> watched)
      : api_(api), exchange_(exchange), watched_(std::move(watched)) {}
  asio::awaitable<void> run(std::chrono::seconds length);

 private:
  void hello();
  void snapshot(const Engine::Moment& moment);
  // Up to event `last`.
  void more(std::uint64_t last);

  Api& api_;
  Exchange& exchange_;
  std::unique_ptr<TraceHub::Stream> watched_;  // so that changes of pages are told
  std::optional<LogLines> lines_;
  std::string out_;  // not sent yet
};

void Recorder::hello() {
  append_line(out_, "hello", hello_json(*api_.engine, api_.model_name, exchange_.request()));
  snapshot(api_.engine->moment());
}

void Recorder::snapshot(const Engine::Moment& moment) {
  append_line(out_, "snapshot", moment_json(*api_.engine, moment, exchange_.request()));
  lines_.emplace(api_.engine->log(), moment.place);
}

void Recorder::more(std::uint64_t last) {
  const std::uint64_t lost = lines_->more(out_, last, kPieceBytes);
  if (lost == 0) return;
  const std::uint64_t told = lines_->told() - lost;
  const Engine::Moment moment = api_.engine->moment();
  append_gap_line(out_, told, moment.seq);
  snapshot(moment);
}

asio::awaitable<void> Recorder::run(std::chrono::seconds length) {
  const auto until = std::chrono::steady_clock::now() + length;
  co_await exchange_.begin(kRecordingType, file_headers("vitrine.vtr"));
  auto first = [&] { hello(); };
  co_await exchange_.on_worker(first);
  std::uint64_t last = UINT64_MAX;
  for (std::size_t sent = 0;;) {
    const bool all = out_.size() < kPieceBytes;
    if (!exchange_.hold(static_cast<std::int64_t>(out_.size()))) co_return;
    sent += out_.size();
    for (std::size_t at = 0; at < out_.size(); at += kPieceBytes) {
      bool here = co_await exchange_.send(out_.substr(at, kPieceBytes));
      if (!here) co_return;
    }
    out_.clear();
    if (lines_->told() >= last || sent >= kMostRecorded) break;
    if (all) {
      bool here = co_await exchange_.wait_for(api_.trace.interval);
      if (!here) co_return;
    }
    if (last == UINT64_MAX && (api_.draining || std::chrono::steady_clock::now() >= until))
      last = api_.engine->log().last_seq();
    auto next = [&] { more(last); };
    co_await exchange_.on_worker(next);
  }
  co_await exchange_.end();
}

asio::awaitable<void> export_steps(Api& api, Exchange& exchange) {
  const HttpRequest& http = exchange.request();
  std::string format;
  std::uint64_t seconds = 0;
  const QueryParameter formats{"format", "perfetto or vtr", [&](std::string_view value) {
                                 format = value;
                                 return value == "perfetto" || value == "vtr";
                               }};
  std::optional<Reply> reply;
  if (!http.rights.is_operator)
    reply = operator_only(http.path);
  else if (auto error =
               read_query(http.query, {formats, whole_number("seconds", seconds, 1, kMostSeconds)}))
    reply = *error;
  else if (format.empty())
    reply = bad_field("format", "format: found nothing, must be perfetto or vtr", "invalid_value");
  else if (format == "perfetto" && seconds > 0)
    reply = bad_field("seconds", "seconds: found with format=perfetto, allowed with format=vtr",
                      "invalid_value");
  else if (!api.engine->log().on())
    reply = no_log();
  std::unique_ptr<TraceHub::Stream> watched;
  auto job = [&] {
    if (seconds > 0)
      watched = api.trace.open(*api.engine);
    else
      reply = format == "vtr" ? kept(api, http) : perfetto(*api.engine);
  };
  if (!reply) co_await exchange.on_worker(job);
  if (!reply && !watched) reply = Reply(too_many_streams(), {{"Retry-After", "15"}});
  if (reply) {
    co_await send_reply(exchange, std::move(*reply));
    co_return;
  }
  Recorder recorder(api, exchange, std::move(watched));
  co_await recorder.run(std::chrono::seconds(seconds));
}

}  // namespace

extern const Endpoint kEndpoint_steps_export;
const Endpoint kEndpoint_steps_export{"GET", {"/api/steps/export"}, export_steps};

}  // namespace vitrine
