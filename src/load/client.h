// Sends a load to a server over HTTP/1.1 and records what comes back. One thread, no locks, so that
// it takes little CPU from a server on the same machine.
#pragma once

#include <string>

#include "base/result.h"
#include "load/plan.h"
#include "load/trace.h"

namespace vitrine::load {

struct Target {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string api_key;  // empty: none is sent
  std::string model;    // the name to ask for; empty: none
};
// "http://HOST[:PORT][/]"
Result<Target> parse_url(const std::string& url);

// What GET /api/info says; zero or empty where it does not.
struct ServerInfo {
  int vocab = 0;
  std::string model;
};
Result<ServerInfo> ask_info(const Target& target);

// POST /v1/completions, head and body.
std::string completion_request(const Target& target, const PlannedRequest& planned);

// Warms up, then runs the load to its end. Fails only when the server's name cannot be resolved;
// whatever goes wrong with a request is in its trace.
Result<LoadTrace> run_load(const Target& target, const LoadSpec& spec);

}  // namespace vitrine::load
