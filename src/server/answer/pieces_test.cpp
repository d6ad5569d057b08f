#include "server/answer/pieces.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace vitrine {
namespace {

// All pieces, and that each but the last is long enough and none is much longer.
std::string all_of(Reply reply) {
  std::string out = reply.body, piece;
  for (bool more = static_cast<bool>(reply.more); more;) {
    EXPECT_GE(reply.body.size(), kPieceBytes);
    EXPECT_LT(reply.body.size(), kPieceBytes + (32 << 10));
    reply.body.clear();
    more = reply.more(reply.body);
    out += reply.body;
  }
  return out;
}

TEST(Pieces, AreTheWholeInOrder) {
  for (std::size_t n : {0u, 1u, 1000u, 300'000u}) {
    Pieces pieces;
    pieces.add("{\"list\":").list(n, [](std::string& out, std::size_t i) {
      out += std::to_string(i);
    });
    pieces.add(",\"end\":true}");
    Reply reply = reply_in_pieces(std::move(pieces), 77);
    EXPECT_EQ(static_cast<bool>(reply.more), n > 10'000);
    EXPECT_EQ(reply.held, n > 10'000 ? 77 : 0);
    json::array list(n);
    for (std::size_t i = 0; i < n; ++i) list[i] = i;
    EXPECT_EQ(all_of(std::move(reply)), to_json(json::object{{"list", list}, {"end", true}}));
  }
}

TEST(Pieces, TextIsCutBetweenCharacters) {
  for (const char* unit : {"a", "é", "a中", "😀", "\"\\\n\x01", "😀b"})
    for (std::size_t n : {0u, 1u, 4095u, 4096u, 4097u, 200'001u}) {
      auto text = std::make_shared<std::string>();
      while (text->size() < n) *text += unit;
      Pieces pieces;
      pieces.text(text);
      EXPECT_EQ(all_of(reply_in_pieces(std::move(pieces), 0)), to_json(json::value(*text)))
          << unit << " " << n;
    }
}

}  // namespace
}  // namespace vitrine
