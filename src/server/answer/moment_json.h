// What the engine is doing, as JSON: for GET /api/snapshot and for the beginning of a stream.
#pragma once

#include "base/json.h"
#include "engine/engine.h"
#include "server/error.h"
#include "server/http/http.h"

namespace vitrine {

// As `http`'s key may see it: its own sequences, and for an operator everything.
json::object snapshot_json(const Snapshot& snapshot, const HttpRequest& http);
// For operators: also every page, every block table, and after which event of the log it is.
json::object moment_json(const Engine& engine, const Engine::Moment& moment,
                         const HttpRequest& http);
json::object pages_json(const PageMap& map);
// What a stream or a recording begins with.
json::object hello_json(const Engine& engine, const std::string& model, const HttpRequest& http);

// Why there is neither: the server keeps no log; as many watch it as can.
ApiError no_log();
ApiError too_many_streams();

}  // namespace vitrine
