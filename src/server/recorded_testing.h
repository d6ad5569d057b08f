// For tests of what is made of recorded requests: a request is asked and recorded, then looked at.
#pragma once

#include "server/api_test_fixture.h"
#include "server/request/call.h"

namespace vitrine::test {

inline const std::string kComplete = "/v1/completions";

class RecordedTest : public ApiTest {
 protected:
  // Of a recorded completion: the ids of prompt and answer.
  std::vector<std::int32_t> record(const std::string& label, const std::string& fields,
                                   const std::string& tenant = "",
                                   const std::string& path = kComplete) {
    FakeExchange x(io, "{" + fields + R"(,"vitrine":{"record":true}})");
    x.mutable_request().id = label;
    x.mutable_request().tenant = tenant;
    if (!tenant.empty()) x.mutable_request().rights = {.is_operator = false, .min_priority = 0};
    begin(x, path);
    finish();
    EXPECT_EQ(x.status, 200) << x.body;
    return ids_of(label);
  }
  json::object look(const std::string& label) {
    auto x = call("/api/requests/" + label + "/tokens", "", "", "GET");
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body).get_object();
  }
  std::vector<std::int32_t> ids_of(const std::string& label) {
    std::vector<std::int32_t> out;
    const json::object text = look(label);
    for (const json::value& t : text.at("tokens").as_array())
      out.push_back(t.at("id").to_number<std::int32_t>());
    return out;
  }
  std::unique_ptr<FakeExchange> post(const std::string& label, const std::string& what,
                                     const std::string& body, const std::string& tenant = "") {
    return call("/api/requests/" + label + "/" + what, body, tenant);
  }
  json::object posted(const std::string& label, const std::string& what, const std::string& body) {
    auto x = post(label, what, body);
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body).get_object();
  }
  // What the engine says to a request, kept as if it had come over HTTP.
  std::vector<std::int32_t> record_by_hand(const std::string& label, Request r) {
    auto kept = std::make_shared<Call>();
    kept->request = r;
    kept->request.prompt.clear();
    Text text;
    text.label = label;
    text.seed = r.sampling.seed().value();
    text.prompt = std::make_shared<const std::vector<std::int32_t>>(r.prompt);
    text.call = kept;
    text.endpoint = &kCompletions;
    auto stream = *engine->submit(std::move(r));
    text.id = stream->id();
    auto recording = api.texts.begin(std::move(text));
    while (engine->step()) continue;
    while (auto event = stream->next()) recording->add(*event, SaidKind::kOutput);
    recording->end(stream->wait());
    return ids_of(label);
  }
  // Wrong bodies of an endpoint under a recorded request "kept": a 400 each.
  void expect_refused(const std::string& what, const std::vector<std::string>& bodies) {
    for (const std::string& body : bodies) {
      auto x = post("kept", what, body);
      EXPECT_EQ(x->status, 400) << what << " " << body << " " << x->body;
    }
    EXPECT_EQ(post("nobody", what, "{}")->status, 404);
    EXPECT_EQ(post("kept", what, "{}", "bob")->status, 404) << "another key's";
  }
};

}  // namespace vitrine::test
