// What a client can take and what it has already, as its headers say.
#pragma once

#include <string_view>

#include "server/http/http.h"

namespace vitrine {

// Whether Accept-Encoding has `coding` ("br"), by its name or by "*", with a weight above 0. A weight
// that is not a number is none.
bool accepts_encoding(const HttpRequest& request, std::string_view coding);
// Whether If-None-Match has `etag` (with its quotes), strong or weak, or is "*".
bool has_etag(const HttpRequest& request, std::string_view etag);

}  // namespace vitrine
