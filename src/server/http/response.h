// The bytes of an answer's head.
#pragma once

#include <string>

#include "server/http/http.h"

namespace vitrine {

// Status line, Date and `headers`, up to and with the empty line. Characters that would end a line
// are left out of names and values.
std::string response_head(int status, const Headers& headers);

}  // namespace vitrine
