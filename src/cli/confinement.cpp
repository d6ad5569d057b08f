#include "cli/confinement.h"

#include "base/log.h"
#include "base/sandbox.h"

namespace vitrine {

void Confinement::add(const CommandLine& line) {
  line.option(
      "--user", user,
      "become this user once the port is open and keys and certificate are read; needs root");
  line.flag("--sandbox", sandbox,
            "once the model is loaded, give up all rights that serving does not need (landlock, "
            "seccomp)");
}

Status Confinement::drop() const {
  if (user.empty()) return Ok{};
  auto dropped = drop_privileges(user);
  if (dropped.ok()) return Ok{};
  return make_error(dropped.error().code, "--user: {}", dropped.error().message);
}

Status Confinement::enter(std::string_view backend, std::vector<std::string> reread) const {
  if (!sandbox) return Ok{};
  if (backend == "cuda")
    return make_error(ErrorCode::kUnsupported,
                      "--sandbox: found the backend cuda, allowed cpu and ref; the driver of a GPU "
                      "opens devices and talks to them all the time, which the sandbox forbids");
  std::erase(reread, "");
  auto entered = enter_sandbox(reread);
  if (!entered.ok()) return make_error(entered.error().code, "--{}", entered.error().message);
  if (entered->landlock_abi == 0)
    LogLine(LogLevel::kWarn, "sandbox without landlock")
        .field("what", reread.empty()
                           ? "this kernel has none; seccomp alone lets no file be opened"
                           : "this kernel has none; seccomp alone lets every file be read that the "
                             "user may read");
  LogLine(LogLevel::kInfo, "sandbox")
      .field("landlock", std::int64_t{entered->landlock_abi})
      .field("readable", fmt::format("{}", fmt::join(entered->readable, " ")));
  return Ok{};
}

}  // namespace vitrine
