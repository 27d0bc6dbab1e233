app_name = "evalsets"
urlpatterns = []
