// GET /health: the process answers.
#include "server/api.h"

namespace vitrine {
namespace {

Reply health(const Api&, const HttpRequest&) { return std::string(R"({"status":"ok"})"); }

}  // namespace

extern const Endpoint kEndpoint_health;
const Endpoint kEndpoint_health{"GET", {"/health"}, reply_at_once<health>, true, true};

}  // namespace vitrine
