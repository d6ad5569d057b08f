#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace vitrine {
namespace {

class MappedFiles : public testing::Test {
 protected:
  std::string make(const std::string& name, std::size_t bytes) {
    auto path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path) << std::string(bytes, 'x');
    paths_.push_back(path);
    return path.string();
  }
  void TearDown() override {
    for (const auto& path : paths_) std::filesystem::remove(path);
  }

 private:
  std::vector<std::filesystem::path> paths_;
};

TEST_F(MappedFiles, HoldTheBytes) {
  auto file = MappedFile::open(make("mapped_bytes", 10000));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->text(), std::string(10000, 'x'));
  auto empty = MappedFile::open(make("mapped_empty", 0));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
}

TEST_F(MappedFiles, SayWhatIsWrong) {
  EXPECT_EQ(MappedFile::open("/no/such/file").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::open(testing::TempDir()).error().code, ErrorCode::kInvalid);
}

// Read in a process of its own, which ends.
TEST_F(MappedFiles, ThatAreCutShortEndTheProcessWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string path = make("mapped_cut", 64 * 1024), beside = make("mapped_other", 64 * 1024);
  auto read_what_is_gone = [&] {
    auto file = MappedFile::open(path), other = MappedFile::open(beside);
    std::filesystem::resize_file(path, 100);
    volatile auto last = file->bytes().back();
    (void)last;
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(1),
              "fatal: .*mapped_cut: the file was cut short");
}

// More files than any table has room for at once.
TEST_F(MappedFiles, AreNamedHoweverManyThereAre) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string path = make("mapped_late", 64 * 1024), beside = make("mapped_many", 64 * 1024);
  auto read_what_is_gone = [&] {
    std::vector<MappedFile> many;
    for (int i = 0; i < 1000; ++i) many.push_back(std::move(*MappedFile::open(beside)));
    auto file = MappedFile::open(path);
    std::filesystem::resize_file(path, 100);
    volatile auto last = file->bytes().back();
    (void)last;
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(1),
              "fatal: .*mapped_late: the file was cut short");
}

TEST_F(MappedFiles, KnowThatTheyWereOverwritten) {
  std::string path = make("mapped_changed", 100);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->change());
  auto written = std::filesystem::last_write_time(path);
  std::ofstream(path, std::ios::in) << "y";
  std::filesystem::last_write_time(path, written + std::chrono::seconds(5));
  auto change = file->change();
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->replaced);
  EXPECT_EQ(change->path, path);
  std::filesystem::last_write_time(path, written);
  EXPECT_FALSE(file->change());
  std::ofstream(path, std::ios::app) << "y";
  std::filesystem::last_write_time(path, written);
  ASSERT_TRUE(file->change());
  EXPECT_THAT(file->change()->what, testing::HasSubstr("had 100 bytes"));
  EXPECT_THAT(file->change()->what, testing::HasSubstr("has 101 bytes"));
}

TEST_F(MappedFiles, HoldWhatTheyHeldWhenTheNameIsGivenToAnother) {
  std::string path = make("mapped_renamed", 100), other = make("mapped_new", 50);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::rename(other, path);
  ASSERT_TRUE(file->change());
  EXPECT_TRUE(file->change()->replaced);
  EXPECT_EQ(file->text(), std::string(100, 'x'));
  std::filesystem::remove(path);
  ASSERT_TRUE(file->change());
  EXPECT_TRUE(file->change()->replaced);
}

}  // namespace
}  // namespace vitrine
