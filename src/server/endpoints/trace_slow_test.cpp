// GET /api/trace over a real socket: a reader that takes a kilobyte now and then, and what it misses.
#include <fstream>

#include "server/api_testing.h"
#include "server/http/test_routes.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;
using namespace http_testing;

std::int64_t resident_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return -1;
}

// The frames of an event stream in chunks, as they come.
class Frames {
 public:
  explicit Frames(Client& client) : client_(client) {}

  // What has come, `bytes` of it at most; false where there was nothing for so long.
  bool receive(std::size_t bytes, std::chrono::milliseconds timeout) {
    const std::string some = client_.receive(bytes, timeout);
    raw_ += some;
    if (!begun_ && raw_.find("\r\n\r\n") != raw_.npos) {
      raw_.erase(0, raw_.find("\r\n\r\n") + 4);
      begun_ = true;
    }
    while (begun_) {
      const std::size_t line = raw_.find("\r\n");
      if (line == raw_.npos) break;
      const std::size_t size = std::stoul(raw_.substr(0, line), nullptr, 16);
      if (raw_.size() < line + 2 + size + 2) break;
      text_.append(raw_, line + 2, size);
      raw_.erase(0, line + 2 + size + 2);
    }
    return !some.empty();
  }
  // The next whole frame: its name and data.
  bool next(std::string& name, json::object& data) {
    const std::size_t end = text_.find("\n\n", at_);
    if (end == text_.npos) return false;
    const std::string_view frame = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 2;
    name = frame.substr(7, frame.find('\n') - 7);
    data = json::parse(frame.substr(frame.find("\ndata: ") + 7)).get_object();
    return true;
  }

 private:
  Client& client_;
  bool begun_ = false;
  std::string raw_, text_;
  std::size_t at_ = 0;
};

class TraceSlowTest : public HttpTest {
 protected:
  TraceSlowTest() {
    EngineOptions o;
    o.backend = "cpu", o.threads = 1, o.sequences = 8, o.page_size = 16, o.context = 256;
    o.trace_mib = 4;
    engine = std::move(Engine::create(test::tiny_model(), o)).value();
    api.model_name = "tiny";
    api.tokenizer = tokenizer.get();
    api.attach(*engine);
    EXPECT_TRUE(engine->start().ok());
  }
  // Until so many bytes more are in the log.
  template <typename F>
  void work(std::uint64_t bytes, F meanwhile) {
    const std::uint64_t from = engine->log().end().at;
    std::vector<std::shared_ptr<TokenStream>> streams;
    while ((engine->log().end().at - from) * sizeof(std::uint64_t) < bytes) {
      Request request;
      request.prompt = {5, 6, 7}, request.max_tokens = 200, request.ignore_eos = true;
      request.choices = 8;
      auto made = engine->submit_choices(request);
      ASSERT_TRUE(made.ok()) << made.error().message;
      for (auto& stream : *made) {
        while (stream->next()) continue;
        meanwhile();
      }
    }
  }

  std::unique_ptr<Tokenizer> tokenizer = test::tiny_tokenizer();
  std::unique_ptr<Engine> engine;
  Api api;
};

std::uint64_t number(const json::object& o, const char* name) {
  return o.at(name).to_number<std::uint64_t>();
}

TEST_F(TraceSlowTest, WhatASlowReaderMissesIsCountedAndNotKept) {
  RunningServer server(options(), api_service(api).routes);
  work(5 << 20, [] {});  // the log is full
  Client client(server.port(), 4096);
  Frames frames(client);
  ASSERT_TRUE(client.send(get("/api/trace")));
  ASSERT_TRUE(frames.receive(1024, kPatience));
  const std::int64_t before = resident_kib();
  std::int64_t held = 0;
  work(16 << 20, [&] {
    frames.receive(1024, 1ms);
    held = std::max(held, server->counts().answer_bytes);
  });
  EXPECT_LT(held, 2 << 20);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_GT(before, 0);  // sanitizers keep memory of their own for all that is touched
#else
  EXPECT_LT(resident_kib() - before, 12 << 10);
#endif

  // Now it reads all that there is.
  ASSERT_TRUE(eventually([&] { return engine->idle(); }));
  const std::uint64_t newest = engine->log().last_seq();
  std::uint64_t first = 0, seq = 0, told = 0, gaps = 0, lost = 0, dropped = 0;
  bool behind = false;  // a snapshot has to follow
  std::string name;
  json::object data;
  for (bool pinged = false; seq < newest || !pinged;) {
    ASSERT_TRUE(frames.receive(64 << 10, kPatience));
    while (frames.next(name, data)) {
      if (name == "hello") continue;
      if (name == "snapshot") {
        EXPECT_TRUE(first == 0 || number(data, "seq") == seq);
        seq = number(data, "seq");
        if (first == 0) first = seq;
        behind = false;
      } else if (name == "gap") {
        ASSERT_EQ(number(data, "from"), seq);
        ++gaps, lost += number(data, "to") - seq;
        seq = number(data, "to");
        behind = true;
      } else if (name == "ping") {
        dropped = number(data, "dropped");
        pinged = seq >= newest;
      } else {
        ASSERT_FALSE(behind);
        ASSERT_EQ(number(data, "seq"), ++seq);
        ++told;
      }
    }
  }
  EXPECT_EQ(seq, newest);
  EXPECT_EQ(told + lost, newest - first);
  EXPECT_EQ(dropped, lost);
  EXPECT_GE(gaps, 1u);
  EXPECT_GT(lost, 1000u);
  EXPECT_GT(told, 100u);
  api.draining = true;
  EXPECT_TRUE(eventually([&] { return api.trace.streams() == 0; }));
}

TEST_F(TraceSlowTest, BytesOfAnAnswerAreThoseThatCame) {
  RunningServer server(options(), api_service(api).routes);
  Client client(server.port());
  ASSERT_TRUE(client.send(
      post("/v1/completions", R"({"prompt":"abc","max_tokens":20,"stream":true,"ignore_eos":true})",
           "Connection: close\r\n")));
  std::size_t bytes = 0;
  for (std::string some; !(some = client.receive(1 << 16, kPatience)).empty();)
    bytes += some.size();
  StepLog::Place place = engine->log().oldest();
  std::vector<std::uint64_t> words;
  WrittenEvent found;
  ASSERT_TRUE(eventually([&] {
    engine->log().read(place, words, SIZE_MAX);
    StepLog::each(words, [&](const PackedEvent& event) {
      if (event.kind == EventKind::kWritten)
        found = unpacked<WrittenFields, WrittenEvent>(event.bytes);
    });
    return found.at_ns > 0;
  }));
  EXPECT_EQ(found.bytes_out, static_cast<std::int64_t>(bytes));
  EXPECT_EQ(found.sequence, 1u);
  EXPECT_GT(found.first_write_ns, 0);
  EXPECT_LE(found.first_write_ns, found.last_write_ns);
  EXPECT_LE(found.last_write_ns, found.at_ns);
}

}  // namespace
}  // namespace vitrine
