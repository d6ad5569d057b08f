// GET /metrics, for Prometheus.
#include "engine/engine.h"
#include "server/answer/metrics_text.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply metrics(const Api& api, const HttpRequest& request) {
  if (!request.rights.is_operator) return operator_only(request.path);
  HttpCounts http = api.http_counts ? api.http_counts() : HttpCounts{};
  Reply out(metrics_text(api.engine->metrics(), http, api.model_name));
  out.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return out;
}

}  // namespace

extern const Endpoint kEndpoint_metrics;
const Endpoint kEndpoint_metrics{"GET", {"/metrics"}, reply_from_worker<metrics>};

}  // namespace vitrine
