// The threads that do what takes longer than a millisecond, and whose turn it is: among keys that wait,
// the one that has used the least time for its weight. A key that sends much work delays itself, and
// another one by the job in work at most.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace vitrine {

class Workers {
 public:
  using Job = std::function<void()>;  // throws nothing

  // Threads that call run(). A key with a name leaves one of several to the others. Before any work.
  void set_threads(int threads) { threads_ = threads; }
  // Any thread.
  void post(const std::string& tenant, double weight, Job job);
  // Works until close(), and then until nothing waits.
  void run();
  void close();

 private:
  struct Queue {
    std::deque<Job> jobs;
    double weight = 1;
    double used = 0;  // seconds for its weight; comparable among those that wait or work
    int working = 0;
    bool idle() const { return jobs.empty() && working == 0; }
  };
  using Queues = std::map<std::string, Queue>;
  // Whose job is next; end(): nobody's now.
  Queues::iterator next();

  int threads_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  Queues queues_;  // of keys that are not idle
  bool closed_ = false;
};

}  // namespace vitrine
