// Errors as clients of the API see them: OpenAI's shape.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/http.h"

namespace vitrine {

struct ApiError {
  int status;
  std::string type;  // "invalid_request_error", "rate_limit_error", ...
  std::string message;
  std::string param;  // the field; empty: null
  std::string code;   // empty: null
};

// {"error": {"message", "type", "param", "code"}}
std::string error_body(const ApiError& error);

// A 400 about a field; empty: about the whole body.
ApiError bad_field(std::string param, std::string message, std::string code = {});
ApiError no_tokenizer();
// The engine does not take a request.
ApiError engine_error(const Error& error);
// The transport refuses a request.
ApiError transport_error(const HttpError& error);
// What is about all keys needs an operator's.
ApiError operator_only(std::string_view path);
// While the model is being loaded.
ApiError still_loading();
// While the server drains, and of answers that this cut short.
ApiError shutting_down();
ApiError out_of_memory();

}  // namespace vitrine
