// From a path that names a request (/api/requests/ID/..) to its text, for those that may see it.
#pragma once

#include <optional>

#include "server/api.h"

namespace vitrine {

// The text of the request that `http` names by number or label; of several choices the one that the
// query asks for (?choice=1), else the first. An error: there is none that this key may see.
std::optional<ApiError> find_text(const Api& api, const HttpRequest& http, Text& out);
// A 404 that says why.
ApiError not_kept(const Api& api, std::string_view name);

}  // namespace vitrine
