// Fields that generation and embeddings share: the model's name, prompts, and how the engine
// schedules them.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {

// A name other than the served model's is a 404.
void read_model_name(const Api& api, JsonFields& fields);
ApiError unknown_model(const Api& api, const std::string& name);
// Whose it is, what it is called, and when it came: from the HTTP request.
void read_origin(const HttpRequest& http, Request& request);
// priority, timeout, cache_salt; the origin.
void read_service(const Api& api, const HttpRequest& http, JsonFields& fields, Request& request);

// A field that holds a prompt or several: a string, a list of strings, a list of token ids or a
// list of such lists.
struct PromptField {
  const char* name;
  const char* plural;  // what they are, in errors
  std::size_t most;
  std::string why_most = {};  // " because .."
  bool may_be_empty = true;   // whether "" is one
  bool keep_text = false;
};
struct Prompts {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::string> texts;  // with keep_text
};
Prompts read_prompts(const Api& api, JsonFields& fields, const PromptField& field);

}  // namespace vitrine
