// Memory that is not there, at the endpoints that look at what was done and kept.
#include "base/json.h"
#include "faults/faulty_server.h"

namespace vitrine {
namespace {

using namespace test;

const std::string kOfKept = "/api/requests/kept";

class RecordedFaults : public Faults {
 protected:
  RecordedFaults() { record("kept"); }

  void record(const std::string& label) {
    const Response got = ask(
        post("/v1/completions",
             R"({"prompt":"abc abc","max_tokens":8,"ignore_eos":true,"vitrine":{"record":true}})",
             "X-Request-Id: " + label + "\r\n"));
    ASSERT_EQ(got.status, 200) << got.body;
  }
  // Rows that were computed are kept: without them they are computed every time.
  void forget_rows() {
    for (const Texts::Kept& each : api.texts.find("kept", HttpRequest())) api.rows.forget(each.id);
  }
};

TEST_F(RecordedFaults, MemoryForRowsThatAreComputedAgain) {
  prepare = [this] { forget_rows(); };
  for (const std::string& request :
       {post(kOfKept + "/stages", R"({"position":10,"draws":3,"sampling":{"temperature":1}})"),
        post(kOfKept + "/scan", R"({"sampling":{"temperature":1}})")})
    if (!HasFatalFailure()) step_through_memory(request, false);
}

TEST_F(RecordedFaults, MemoryForForks) {
  for (const char* more : {R"("n":2,"stream":false)", R"("token":9)"})
    if (!HasFatalFailure())
      step_through_memory(
          post(kOfKept + "/fork", fmt::format(R"({{"position":10,"max_tokens":3,{}}})", more)));
}

TEST_F(RecordedFaults, MemoryForBeams) {
  step_through_memory(post(
      "/v1/completions",
      R"({"prompt":"abc","max_tokens":4,"use_beam_search":true,"n":2,"beams":3,"regex":"[a-f]+"})"));
}

TEST_F(RecordedFaults, MemoryForARequestThatIsHeld) {
  // The last one is left where it is by its client.
  step_through_memory(post(
      "/v1/completions", R"({"prompt":"abc","max_tokens":4,"vitrine":{"record":true,"allow":100}})",
      "X-Request-Id: held\r\n"));
  if (!HasFatalFailure()) step_through_memory(post(kOfKept + "/hold", R"({"allow":1})"), false);
}

// All accounts are looked through.
TEST_F(RecordedFaults, MemoryForWhatIsTold) {
  prepare = [this] {
    if (ask(get(kOfKept)).status == 404) record("kept");  // it was no longer among the last ones
  };
  for (const std::string& request : {get(kOfKept), get(kOfKept + "/export?format=perfetto"),
                                     get(kOfKept + "/export?format=otlp&text=1")})
    if (!HasFatalFailure()) step_through_memory(request, false, 11);
  for (const std::string& request : {get(kOfKept + "/tokens"), get("/api/tree")})
    if (!HasFatalFailure()) step_through_memory(request, false);
}

// Their answers grow with the requests that this test makes.
TEST_F(RecordedFaults, MemoryForWhatIsToldOfTheSteps) {
  for (const char* path : {"/api/pages", "/api/steps?limit=3"})
    if (!HasFatalFailure()) step_through_memory(get(path), false, 7);
  for (const char* format : {"perfetto", "vtr"})
    if (!HasFatalFailure())
      step_through_memory(get(fmt::format("/api/steps/export?format={}", format)), false, 997);
}

TEST_F(RecordedFaults, MemoryToForget) {
  prepare = [this] { record("gone"); };
  std::string request = get("/api/requests/gone");
  step_through_memory(request.replace(0, 3, "DELETE"));
}

TEST_F(RecordedFaults, MemoryForExplanations) {
  for (const std::string& request :
       {post("/tokenize", R"({"content":"abc <s> abc","trace":true})"),
        post("/apply-template",
             R"({"spans":true,"messages":[{"role":"user","content":"hello"}]})")})
    if (!HasFatalFailure()) step_through_memory(request);
}

TEST_F(RecordedFaults, MemoryForTheLab) {
  // Company has no reader: it runs on after the answer.
  prepare = [this] { ASSERT_TRUE(eventually([this] { return engine->idle(); })); };
  step_through_memory(post("/api/lab/company", R"({"n":3,"max_tokens":2})"), false);
#ifndef __SANITIZE_ADDRESS__  // it would measure for half a minute each time
  if (!HasFatalFailure()) step_through_memory(post("/api/peak", R"({"again":true})"), false, 101);
#endif
}

// Who watches is told or cut off, and nothing is left behind; another one sees all that follows.
TEST_F(RecordedFaults, MemoryForAStreamOfEvents) {
  for (long count : {1, 30}) {
    long failed = 1;
    for (long n = 1; failed > 0 && !HasFatalFailure(); n += 7 * stride()) {
      {
        plan_fault(Fault::kAllocation, n, count);
        Client watcher(server->port());
        watcher.send(get("/api/trace", "Connection: close\r\n"));
        watcher.receive_until("event: snapshot");
        ask(kPlain);
        failed = end_fault(Fault::kAllocation);
        ask(kPlain);
        watcher.receive_until("event: step");
        Client other(server->port());
        other.send(get("/api/trace", "Connection: close\r\n"));
        ASSERT_TRUE(other.receive_until("event: snapshot")) << n;
        ask(kPlain);
        ASSERT_TRUE(other.receive_until("event: step")) << n;
      }
      expect_well(fmt::format("allocation {} of a stream of events", n));
    }
  }
}

}  // namespace
}  // namespace vitrine
