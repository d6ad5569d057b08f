// What commands print: JSON documents to stdout, errors to stderr.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace vitrine {

void print_json(const json::value& value);
// "error: ..." to stderr; 1, for the command to return.
int fail(const Error& error);
// 1,234,567
std::string with_commas(std::int64_t n);
// "1.5 GiB"
std::string human_bytes(std::int64_t bytes);

}  // namespace vitrine
