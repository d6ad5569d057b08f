// The engine's numbers in Prometheus' text format, version 0.0.4, with vLLM's names.
#pragma once

#include <string>

#include "engine/stats.h"
#include "server/http/http.h"

namespace vitrine {

std::string metrics_text(const Metrics& metrics, const HttpCounts& http,
                         const std::string& model_name);

}  // namespace vitrine
