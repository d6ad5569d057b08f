// What is kept in tables of the server stays whole when an entry finds no memory: all of it is there, or nothing.
#include "faults/faulty_server.h"
#include "server/logit_rows.h"
#include "server/request/call.h"
#include "server/trace_hub.h"

namespace vitrine {
namespace {

using namespace test;

// Does it with the nth allocation failing, for all n until none fails. `again` looks after each.
template <typename Do, typename Again>
void with_every_allocation(Do act, Again again) {
  long failed = 1, tried = 0;
  for (long n = 1; failed > 0; ++n, ++tried) {
    bool threw = false;
    plan_fault(Fault::kAllocation, n);
    try {
      act();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    failed = end_fault(Fault::kAllocation);
    EXPECT_EQ(threw, failed > 0);
    again(threw);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(tried, 1);
}

TEST(KeptFaults, RowsOfLogits) {
  constexpr std::size_t kRow = 16;
  const auto row = std::make_shared<const std::vector<float>>(kRow);
  LogitRows rows(4 * kRow * sizeof(float));
  int at = 0;
  with_every_allocation([&] { rows.add(1, ++at, row); },
                        [&](bool threw) {
                          EXPECT_EQ(rows.find(1, at) == nullptr, threw);
                          // These evict all that was there.
                          for (int i = 0; i < 5; ++i) rows.add(2, 100 * at + i, row);
                          EXPECT_EQ(rows.bytes(), 4 * kRow * sizeof(float));
                        });
  rows.forget(1), rows.forget(2);
  EXPECT_EQ(rows.bytes(), 0u);
}

TEST(KeptFaults, Texts) {
  Texts texts;
  const auto call = std::make_shared<const Call>();
  const auto prompt = std::make_shared<const std::vector<std::int32_t>>(1000, 5);
  HttpRequest http;
  std::uint64_t id = 0;
  std::unique_ptr<Recording> recording;
  with_every_allocation(
      [&] {
        Text text;
        text.id = ++id;
        text.label = "a label that is too long to be kept in place", text.tenant = "ann";
        text.prompt = prompt, text.call = call;
        recording = texts.begin(std::move(text));
      },
      [&](bool threw) {
        EXPECT_EQ(texts.has(id), !threw);
        recording.reset();
        texts.forget(std::to_string(id), http);
        EXPECT_EQ(texts.bytes(), 0u) << "room is lost for good";
        EXPECT_EQ(texts.size(), 0u);
      });
}

// Of a token that finds no memory the whole text is forgotten.
TEST(KeptFaults, TokensOfATextThatRuns) {
  Texts texts;
  HttpRequest http;
  const auto call = std::make_shared<const Call>();
  const auto prompt = std::make_shared<const std::vector<std::int32_t>>(10, 5);
  for (long n = 1; n <= 12; ++n) {
    Text text;
    text.id = static_cast<std::uint64_t>(n);
    text.prompt = prompt, text.call = call;
    auto recording = texts.begin(std::move(text));
    plan_fault(Fault::kAllocation, n);
    for (int i = 0; i < 5; ++i) recording->add({.token = i}, SaidKind::kOutput);
    EXPECT_EQ(texts.has(static_cast<std::uint64_t>(n)), end_fault(Fault::kAllocation) == 0);
    texts.forget(std::to_string(n), http);
    EXPECT_EQ(texts.bytes(), 0u);
  }
}

// A reader sees every event, or is told that some are lost.
TEST(KeptFaults, EventsThatAreWatched) {
  auto engine = std::move(Engine::create(tiny_model(), engine_options())).value();
  TraceHub hub;
  hub.interval = std::chrono::milliseconds(0);
  auto run = [&] {
    Request r;
    r.prompt = {5, 6, 7}, r.max_tokens = 4;
    EXPECT_TRUE(r.sampling.set_logit_bias({{kNanToken, -100}}).ok());
    auto stream = *engine->submit(std::move(r));
    while (engine->step()) continue;
  };
  auto other = hub.open(*engine);  // so that the hub goes on
  other->begin(engine->moment());
  std::unique_ptr<TraceHub::Stream> stream;
  std::string out;
  int lost = 0, seen = 0;
  std::uint64_t before = 0;
  auto prepare = [&] {
    out.clear();
    stream = hub.open(*engine);
    const Engine::Moment moment = engine->moment();
    stream->begin(moment);
    before = moment.seq;
    run();
  };
  prepare();
  with_every_allocation(
      [&] { stream->news(out, SIZE_MAX); },
      [&](bool) {
        run();
        if (stream->news(out, SIZE_MAX)) {
          ++seen;
          std::uint64_t last = before;
          for (std::size_t at = 0; (at = out.find("\nid: ", at)) != out.npos; ++at)
            EXPECT_EQ(std::stoull(out.substr(at + 5)), ++last) << "left out, and nobody said so";
          EXPECT_EQ(last, engine->log().last_seq());
        } else {
          ++lost;
        }
        prepare();
      });
  EXPECT_GT(lost, 0);
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace vitrine
