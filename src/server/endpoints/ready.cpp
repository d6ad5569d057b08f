// GET /ready: the server takes work.
#include "server/api.h"

namespace vitrine {
namespace {

Reply ready(const Api& api, const HttpRequest&) {
  if (api.draining) return shutting_down();
  return std::string(R"({"status":"ready"})");
}

}  // namespace

extern const Endpoint kEndpoint_ready;
const Endpoint kEndpoint_ready{"GET", {"/ready"}, reply_at_once<ready>};

}  // namespace vitrine
