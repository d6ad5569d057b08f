// OpenAI's "prediction": what the client believes the answer to be, {"type": "content", "content": TEXT}. Its
// tokens are guesses for those of the answer (draft/prediction.h), where the engine speculates; it never
// changes the answer.
#pragma once

#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {

// Fills Request::prediction. Without speculation it is checked, and has no effect.
void read_prediction(const Api& api, JsonFields& fields, Request& request);

}  // namespace vitrine
