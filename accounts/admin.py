"""Users and groups in the admin."""

from django.contrib import admin

from accounts.models import Group, User
from dynamo_single.contrib.accounts.admin import GroupAdmin, UserAdmin

admin.site.register(User, UserAdmin)
admin.site.register(Group, GroupAdmin)
