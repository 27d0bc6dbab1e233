from django.shortcuts import render

from annotate.access import ClosedWhileGrading


class ClosedWhileGradingMiddleware:
    """Answers ClosedWhileGrading, wherever it is raised, with the page that says why."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_exception(self, request, exception):
        if not isinstance(exception, ClosedWhileGrading):
            return None
        context = {
            "rounds": exception.rounds,
            "of_response": exception.of_response,
            "second_look": exception.second_look,
        }
        return render(request, "annotate/closed.html", context, status=403)
