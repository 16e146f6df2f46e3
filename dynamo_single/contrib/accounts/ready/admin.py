"""The pages of the users and groups in the admin."""

from django.contrib import admin

from dynamo_single.contrib.accounts.admin import GroupAdmin, UserAdmin
from dynamo_single.contrib.accounts.ready.models import Group, User

admin.site.register(User, UserAdmin)
admin.site.register(Group, GroupAdmin)
