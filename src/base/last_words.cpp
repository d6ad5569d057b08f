#include "base/last_words.h"

#include <atomic>
#include <csignal>
#include <mutex>

namespace vitrine {
namespace {

std::atomic<LastWords*> g_words{nullptr};

// When it returns, std::abort() ends the process as it would have without it.
extern "C" void on_abort(int) {
  if (LastWords* words = g_words.exchange(nullptr)) words->say();
}

}  // namespace

void set_last_words(LastWords& words) {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {
    }, before{};
    if (::sigaction(SIGABRT, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
    action.sa_handler = on_abort;
    action.sa_flags = SA_RESETHAND;
    ::sigaction(SIGABRT, &action, nullptr);
  });
  g_words = &words;
}

void drop_last_words(LastWords& words) {
  LastWords* mine = &words;
  g_words.compare_exchange_strong(mine, nullptr);
}

}  // namespace vitrine
