#include "ras/service.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/log.h"
#include "ras/report/json_report.h"
#include "ras/report/text_report.h"

namespace tutti::ras {

namespace {

/// After host memory was short.
constexpr milliseconds kShortage{100};
constexpr milliseconds kLongest{1000};

/// The forms of one report, each made once for all who want it: of a large job it is long.
class ReportForms {
 public:
  using Text = std::shared_ptr<const std::string>;

  explicit ReportForms(Survey survey) : survey_(std::move(survey)) {}

  Text get(const LibraryFacts& library, const ReportRequest& request) {
    Text& text = request.json ? json_ : request.verbose ? verbose_ : brief_;
    if (text) return text;
    const auto now = std::chrono::system_clock::now();
    text = std::make_shared<const std::string>(request.json ? jsonReport(library, survey_, now)
                                                            : reportRest(survey_, request.verbose));
    return text;
  }

 private:
  Survey survey_;
  Text json_;
  Text verbose_;
  Text brief_;
};

}  // namespace

Service::Service(ServiceOptions options, const Registry& registry, bootstrap::Poller poller)
    : poller_(std::move(poller)),
      library_(options.library),
      clients_(poller_, std::move(options.clients), options.timers.leg),
      network_(poller_, std::move(options.network), options.self, options.timers,
               {[&registry, id = options.self.facts.id] { return registry.snapshot(id); },
                [this](const Event& event) { clients_.happened(event); }}) {}

Result<std::unique_ptr<Service>> Service::start(ServiceOptions options, const Registry& registry) {
  ASSIGN(bootstrap::Poller poller, bootstrap::Poller::create());
  std::unique_ptr<Service> service(new Service(std::move(options), registry, std::move(poller)));
  ASSIGN(service->thread_, Thread::start("NCCL RAS", [raw = service.get()] { raw->run(); }));
  return service;
}

void Service::add(std::vector<Member> members) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.insert(inbox_.end(), members.begin(), members.end());
  }
  poller_.wake();
}

void Service::stop(Deadline deadline) {
  if (!thread_.running()) return;
  {
    const std::lock_guard lock(mutex_);
    stopBy_ = deadline;
  }
  stopping_.store(true);
  poller_.wake();
  thread_.join();
}

void Service::run() {
  const ErrorsAsInfo quiet;
  // Also where it is to stop before it has begun, there is a goodbye to be said.
  while (true) {
    try {
      loop();
      sayGoodbye();
      return;
    } catch (const std::bad_alloc&) {
      if (stopping_.load()) return;
      std::this_thread::sleep_for(kShortage);
    } catch (const std::exception& error) {
      info(kRas, "RAS ends, for something is wrong inside: {}", error.what());
      return;
    }
  }
}

void Service::loop() {
  std::vector<bootstrap::Poller::Event> events;
  while (!stopping_.load()) {
    static_cast<void>(poller_.wait(events, nextDeadline().remaining(kLongest)));
    takeInbox();
    for (const bootstrap::Poller::Event& event : events) {
      if (event.name >= Clients::kFirstName) {
        clients_.onEvent(event);
      } else {
        network_.onEvent(event);
      }
    }
    network_.tend();
    serveClients();
    clients_.tend();
  }
}

Deadline Service::nextDeadline() {
  Deadline next = network_.next();
  for (Session* const session : clients_.waiting()) next = next.earlierOf(session->request()->deadline);
  return next;
}

void Service::takeInbox() {
  std::vector<Member> members;
  {
    const std::lock_guard lock(mutex_);
    members.swap(inbox_);
  }
  network_.add(members);
}

void Service::serveClients() {
  beginTexts();
  giveReports();
  beginReports();
  // A process that is alone has all answers at once.
  giveReports();
  clients_.settle();
}

/// Everybody who waits has the next survey. Whoever comes while one is under way waits for the one after it: what that
/// one says may be older than the question.
void Service::beginReports() {
  const std::vector<Session*> waiting = clients_.waiting();
  if (network_.surveying() || waiting.empty()) return;
  network_.beginSurvey();
  for (Session* const session : waiting) session->request()->asked = true;
}

void Service::beginTexts() {
  std::optional<Survey> roster;
  for (Session* const session : clients_.waiting()) {
    ReportRequest& request = *session->request();
    if (request.json || request.begun) continue;
    request.begun = true;
    if (!roster) roster = network_.roster();
    session->say(reportBegin(library_, roster->processes));
  }
}

void Service::giveReports() {
  if (!network_.surveying()) return;
  const bool done = network_.surveyDone();
  std::optional<ReportForms> forms;
  bool anybody = false;
  for (Session* const session : clients_.waiting()) {
    const bool asked = session->request()->asked;
    if ((done && asked) || session->request()->deadline.expired()) {
      if (!forms) forms.emplace(network_.survey());
      session->report(forms->get(library_, *session->request()));
    } else {
      anybody = anybody || asked;
    }
  }
  if (anybody) return;
  network_.cancelSurvey();
}

void Service::sayGoodbye() {
  clients_.close();
  const Deadline deadline = [this] {
    const std::lock_guard lock(mutex_);
    return stopBy_;
  }();
  takeInbox();
  network_.leave();
  std::vector<bootstrap::Poller::Event> events;
  while (!network_.left() && !deadline.expired()) {
    static_cast<void>(poller_.wait(events, deadline.remaining(milliseconds(20))));
    for (const bootstrap::Poller::Event& event : events) network_.onEvent(event);
    network_.tend();
  }
  network_.close();
}

}  // namespace tutti::ras
