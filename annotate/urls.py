app_name = "annotate"
urlpatterns = []
