// GET /ready: the server takes work. Until the model is loaded: how far that is. Afterwards also
// which of its files were overwritten; the server goes on, but what it reads is not what it checked.
#include "base/json.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply ready(const Api& api, const HttpRequest&) {
  if (api.draining) return shutting_down();
  if (!api.loaded.load(std::memory_order_acquire)) {
    auto done = static_cast<double>(api.load_bytes),
         total = static_cast<double>(api.load_bytes_total);
    Reply out(to_json(json::object{{"status", "loading"},
                                   {"progress", total > 0 ? std::min(1.0, done / total) : 0.0},
                                   {"bytes", api.load_bytes.load()},
                                   {"bytes_total", api.load_bytes_total.load()}}));
    out.status = 503;
    out.headers.emplace_back("Retry-After", "1");
    return out;
  }
  if (auto files = api.changed_files.get(); files != nullptr && !files->empty())
    return to_json(json::object{{"status", "degraded"},
                                {"changed_files", json::array(files->begin(), files->end())}});
  return std::string(R"({"status":"ready"})");
}

}  // namespace

extern const Endpoint kEndpoint_ready;
const Endpoint kEndpoint_ready{"GET", {"/ready"}, reply_at_once<ready>, false, true};

}  // namespace vitrine
