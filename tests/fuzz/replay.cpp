// Calls a fuzz target with every file of the folders that are named.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/fuzz.h"

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      // Exactly as large as the input, so that ASan sees a read past its end.
      std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
      bytes.shrink_to_fit();
      fmt::print(stderr, "{}\n", entry.path().filename().string());
      fuzz_one(vitrine::fuzz::Input(bytes));
      ++count;
    }
  fmt::print("{} inputs\n", count);
  return count > 0 ? 0 : 1;
}
