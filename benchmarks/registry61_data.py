"""The 61-tool registry: tools like those of real servers, and 30 labelled requests.

Requests and labels were written before any ranker was run on them, and are not revised after results.
Half of the requests name what they want in a tool's own words (`direct`), half say what a person needs
and leave the tool to be guessed (`indirect`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

CORE = ("ls", "read_file", "write_file", "edit_file", "glob", "grep")
"""The file-system core that every agent keeps; always included, never ranked."""


class Request(NamedTuple):
    """A request, the tool that it needs, and whether it names that tool in the tool's own words."""

    text: str
    relevant: str
    direct: bool


def _tool(name: str, description: str, domain: str = "", /, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": list(parameters)[:1]},
        "domain": domain or name.partition("_")[0],
    }


TOOLS: list[dict[str, Any]] = [
    # File system
    _tool("ls", "List the files in a directory.", "filesystem", path="Absolute path of the directory."),
    _tool(
        "read_file",
        "Read a text file and return its lines with line numbers.",
        "filesystem",
        file_path="Absolute path of the file.",
        offset="Line to start from.",
        limit="How many lines to read.",
    ),
    _tool(
        "write_file",
        "Write a new text file. Fails if the file exists.",
        "filesystem",
        file_path="Absolute path of the file.",
        content="The whole text to write.",
    ),
    _tool(
        "edit_file",
        "Replace an exact string in a file with another one.",
        "filesystem",
        file_path="Absolute path of the file.",
        old_string="Text to replace; must be unique in the file.",
        new_string="Text to put in its place.",
    ),
    _tool(
        "glob",
        "Find files whose path matches a glob pattern such as **/*.py.",
        "filesystem",
        pattern="The glob pattern.",
        path="Directory to start from.",
    ),
    _tool(
        "grep",
        "Search file contents for a literal string and return the matching lines.",
        "filesystem",
        pattern="The text to look for.",
        path="Directory to search in.",
    ),
    # Slack
    _tool(
        "slack_send_dm",
        "Send a direct message to a single Slack user.",
        user_id="Slack user ID or handle of the recipient.",
        text="Message body in Slack mrkdwn.",
    ),
    _tool(
        "slack_post_message",
        "Post a message to a Slack channel. Supports threads through thread_ts.",
        channel="Channel ID or name, for example #general.",
        text="Message body in Slack mrkdwn.",
        thread_ts="Timestamp of the parent message to reply in its thread.",
    ),
    _tool(
        "slack_list_channels",
        "List the public channels of the Slack workspace with their topics.",
        cursor="Pagination cursor from the previous page.",
        limit="Channels per page, at most 200.",
    ),
    _tool(
        "slack_search_messages",
        "Search messages across the Slack channels that the bot can read.",
        query="Search terms; supports in: and from: modifiers.",
        count="How many matches to return.",
    ),
    _tool(
        "slack_add_reaction",
        "Add an emoji reaction to a Slack message.",
        channel="Channel of the message.",
        timestamp="Timestamp of the message.",
        emoji="Emoji name without colons.",
    ),
    # GitHub
    _tool(
        "github_create_issue",
        "Create a new issue in a GitHub repository.",
        repo="Repository as owner/name.",
        title="Title of the issue.",
        body="Markdown body.",
        labels="Comma-separated labels, for example bug.",
    ),
    _tool(
        "github_list_issues",
        "List issues of a GitHub repository, filtered by state, label or assignee.",
        repo="Repository as owner/name.",
        state="open, closed or all.",
        labels="Only issues with all of these labels.",
    ),
    _tool(
        "github_create_pull_request",
        "Open a pull request that asks to merge one branch into another.",
        repo="Repository as owner/name.",
        head="Branch with the changes.",
        base="Branch to merge into.",
        title="Title of the pull request.",
    ),
    _tool(
        "github_list_pull_requests",
        "List the pull requests of a GitHub repository with author, state and review status.",
        repo="Repository as owner/name.",
        state="open, closed or all.",
    ),
    _tool(
        "github_merge_pull_request",
        "Merge a pull request by merge commit, squash or rebase.",
        repo="Repository as owner/name.",
        number="Number of the pull request.",
        method="merge, squash or rebase.",
    ),
    _tool(
        "github_search_code",
        "Search code across GitHub repositories with GitHub's code search syntax.",
        query="Search query, for example a symbol name with repo: qualifiers.",
    ),
    # Linear
    _tool(
        "linear_create_issue",
        "Create a Linear issue in a team's backlog.",
        team="Key of the team, for example ENG.",
        title="Title of the issue.",
        description="Markdown description.",
        priority="0 (none) to 4 (low); 1 is urgent.",
    ),
    _tool(
        "linear_update_issue",
        "Update title, state, assignee or priority of an existing Linear issue.",
        issue_id="Identifier such as ENG-123.",
        state="Name of the workflow state.",
        assignee="Email of the new assignee.",
    ),
    _tool(
        "linear_list_issues",
        "List Linear issues with filters for team, assignee, cycle and state.",
        team="Key of the team.",
        assignee="Email of the assignee, or me.",
        state="Name of the workflow state.",
    ),
    # Jira
    _tool(
        "jira_create_ticket",
        "Create a ticket in a Jira project.",
        project="Key of the project.",
        issue_type="Bug, Task, Story or Epic.",
        summary="One-line summary.",
    ),
    _tool(
        "jira_transition_issue",
        "Move a Jira issue through its workflow to another status.",
        issue_key="Key of the issue, for example OPS-42.",
        status="Name of the target status, for example Done.",
    ),
    _tool(
        "jira_add_comment",
        "Add a comment to a Jira issue.",
        issue_key="Key of the issue.",
        body="Text of the comment.",
    ),
    _tool(
        "jira_search",
        "Search Jira issues with a JQL query.",
        jql="The JQL query.",
        max_results="How many issues to return.",
    ),
    # Gmail
    _tool(
        "gmail_send_email",
        "Send an email from the user's Gmail account.",
        to="Addresses of the recipients.",
        subject="Subject line.",
        body="Plain text or HTML body.",
    ),
    _tool(
        "gmail_search_messages",
        "Search the mailbox with Gmail's query syntax and return matching messages.",
        query="Gmail query, for example from:bob has:attachment.",
        max_results="How many messages to return.",
    ),
    _tool(
        "gmail_create_draft",
        "Create a draft email without sending it.",
        to="Addresses of the recipients.",
        subject="Subject line.",
        body="Plain text or HTML body.",
    ),
    _tool(
        "gmail_archive_thread",
        "Archive an email thread: remove it from the inbox and keep it in All Mail.",
        thread_id="ID of the thread.",
    ),
    # Calendar
    _tool(
        "calendar_create_event",
        "Create an event on the user's calendar and invite attendees.",
        title="Title of the event.",
        start="Start as RFC 3339 date-time.",
        end="End as RFC 3339 date-time.",
        attendees="Email addresses to invite.",
    ),
    _tool(
        "calendar_list_events",
        "List the events on the user's calendar between two points in time.",
        time_min="Start of the window.",
        time_max="End of the window.",
    ),
    _tool(
        "calendar_find_free_slots",
        "Find time slots in which all given attendees are free.",
        attendees="Email addresses of the attendees.",
        duration_minutes="Length of the slot in minutes.",
        time_min="Earliest start.",
        time_max="Latest end.",
    ),
    _tool(
        "calendar_delete_event",
        "Delete an event from the user's calendar and notify its attendees.",
        event_id="ID of the event.",
    ),
    # Drive
    _tool(
        "drive_search_files",
        "Search files and folders in Google Drive by name or content.",
        query="Words to look for.",
        mime_type="Only files of this MIME type.",
    ),
    _tool(
        "drive_share_file",
        "Share a Google Drive file or folder with a person and set their role.",
        file_id="ID of the file or folder.",
        email="Address of the person.",
        role="reader, commenter or writer.",
    ),
    _tool(
        "drive_upload_file",
        "Upload a local file to a folder in Google Drive.",
        path="Local path of the file.",
        folder_id="ID of the target folder.",
    ),
    # Notion
    _tool(
        "notion_create_page",
        "Create a page in Notion under a parent page or database.",
        parent_id="ID of the parent page or database.",
        title="Title of the page.",
        content="Markdown content.",
    ),
    _tool(
        "notion_query_database",
        "Query a Notion database with filters and sorts.",
        database_id="ID of the database.",
        filter="Filter object as JSON.",
    ),
    _tool(
        "notion_append_block",
        "Append a block of content to the end of a Notion page.",
        page_id="ID of the page.",
        content="Markdown content of the block.",
    ),
    # CRM
    _tool(
        "crm_create_contact",
        "Create a contact record in the CRM.",
        name="Full name.",
        email="Email address.",
        company="Company that the contact works for.",
    ),
    _tool(
        "crm_find_contact",
        "Look up contacts in the CRM by name, email or company.",
        query="Name, email or company.",
    ),
    _tool(
        "crm_update_deal",
        "Update stage, amount or close date of a deal in the sales pipeline.",
        deal_id="ID of the deal.",
        stage="New pipeline stage, for example closed_won.",
        amount="New amount.",
    ),
    _tool(
        "crm_log_call",
        "Log a phone call with a contact: outcome, duration and notes.",
        contact_id="ID of the contact.",
        notes="What was said.",
        duration_minutes="Length of the call.",
    ),
    # Web
    _tool(
        "web_search",
        "Search the web and return titles, snippets and URLs of the best results.",
        query="What to search for.",
        num_results="How many results to return.",
    ),
    _tool(
        "web_fetch_page",
        "Fetch a web page by URL and return its main content as Markdown.",
        url="Address of the page.",
    ),
    # Weather
    _tool(
        "weather_current",
        "Get the current weather at a location: temperature, wind, humidity and precipitation.",
        location="City or coordinates.",
        units="metric or imperial.",
    ),
    _tool(
        "weather_forecast",
        "Get the daily weather forecast for a location for up to ten days.",
        location="City or coordinates.",
        days="Number of days.",
    ),
    # Finance
    _tool(
        "finance_stock_quote",
        "Get the latest price, change and volume of a stock by its ticker symbol.",
        symbol="Ticker symbol, for example MSFT.",
    ),
    _tool(
        "finance_convert_currency",
        "Convert an amount from one currency to another at the current exchange rate.",
        amount="Amount to convert.",
        from_currency="ISO code of the source currency.",
        to_currency="ISO code of the target currency.",
    ),
    _tool(
        "finance_company_news",
        "Get recent news headlines about a listed company.",
        symbol="Ticker symbol.",
        limit="How many headlines.",
    ),
    # Calculator
    _tool(
        "calculator",
        "Evaluate an arithmetic expression with + - * / ** and parentheses.",
        expression="The expression to evaluate.",
    ),
    # Maps
    _tool(
        "maps_get_directions",
        "Get directions between two places with distance and travel time.",
        origin="Where to start.",
        destination="Where to go.",
        mode="driving, walking, cycling or transit.",
    ),
    _tool(
        "maps_find_places",
        "Find restaurants, shops and other places near a location.",
        query="Kind or name of place.",
        near="Address or coordinates to search around.",
    ),
    # SQL
    _tool(
        "sql_run_query",
        "Run a read-only SQL query against the analytics database and return rows.",
        query="SELECT statement.",
        limit="Most rows to return.",
    ),
    _tool("sql_list_tables", "List the tables and columns of the analytics database.", schema="Schema name."),
    # PagerDuty
    _tool(
        "pagerduty_trigger_incident",
        "Trigger an incident on a PagerDuty service and page the responder on call.",
        service="Name of the service.",
        title="What is wrong.",
        urgency="high or low.",
    ),
    _tool(
        "pagerduty_get_on_call",
        "Get who is on call for a PagerDuty schedule or service.",
        service="Name of the service or schedule.",
        at="Point in time; now by default.",
    ),
    # Stripe
    _tool(
        "stripe_create_refund",
        "Refund a Stripe charge in full or in part.",
        charge_id="ID of the charge.",
        amount="Amount in cents; the full charge by default.",
        reason="duplicate, fraudulent or requested_by_customer.",
    ),
    _tool(
        "stripe_list_invoices",
        "List the Stripe invoices of a customer, filtered by status.",
        customer_id="ID of the customer.",
        status="draft, open, paid or void.",
    ),
    _tool(
        "stripe_create_payment_link",
        "Create a payment link for a price that can be sent to a customer.",
        price_id="ID of the price.",
        quantity="How many units.",
    ),
    # Translation and time
    _tool(
        "translate_text",
        "Translate text from one language into another.",
        text="Text to translate.",
        target_language="Language to translate into.",
    ),
    _tool(
        "time_convert_zone",
        "Convert a time from one time zone to another.",
        time="Time as HH:MM.",
        from_zone="IANA name of the source zone.",
        to_zone="IANA name of the target zone.",
    ),
]

_REQUESTS = [
    ("send a direct message to alice on slack", "slack_send_dm", True),
    ("file a bug report on the backend repo", "github_create_issue", False),
    ("mark this jira ticket as in progress", "jira_transition_issue", True),
    ("open a pull request from feature/login into main", "github_create_pull_request", True),
    ("search my gmail for the invoice from acme", "gmail_search_messages", True),
    ("create a calendar event for the design review on thursday", "calendar_create_event", True),
    ("share the budget spreadsheet with dana on google drive", "drive_share_file", True),
    ("create a notion page with the meeting notes", "notion_create_page", True),
    ("what's the weather forecast for lisbon this weekend", "weather_forecast", True),
    ("convert 250 euros to japanese yen", "finance_convert_currency", True),
    ("translate this paragraph into german", "translate_text", True),
    ("run a sql query that counts users by country", "sql_run_query", True),
    ("list the unpaid stripe invoices of customer 1042", "stripe_list_invoices", True),
    ("create a linear issue for the flaky checkout test", "linear_create_issue", True),
    ("who is on call for the payments service right now", "pagerduty_get_on_call", True),
    ("look up the contact at Globex in the crm", "crm_find_contact", True),
    ("let the team know in the channel that the deploy finished", "slack_post_message", False),
    ("what's 340 divided by 12", "calculator", False),
    ("do I need an umbrella in Oslo right now?", "weather_current", False),
    ("how much is one share of Apple trading at?", "finance_stock_quote", False),
    ("give the customer their money back for last week's double charge", "stripe_create_refund", False),
    ("when are Tom and I both free tomorrow afternoon?", "calendar_find_free_slots", False),
    ("the website is down, wake up whoever can fix it", "pagerduty_trigger_incident", False),
    ("where can I get good ramen near the office?", "maps_find_places", False),
    ("how long does it take to get to the airport by train?", "maps_get_directions", False),
    ("if it's 9 in the morning in Tokyo, what time is it in Berlin?", "time_convert_zone", False),
    ("we won the Initech negotiation, move it to closed in our pipeline", "crm_update_deal", False),
    ("write down that I rang Maria Lopez and she wants a demo", "crm_log_call", False),
    ("prepare an answer to Bob's mail, I'll look it over before it goes out", "gmail_create_draft", False),
    ("find out what people are saying about the new EU AI law", "web_search", False),
]

REQUESTS: list[Request] = [Request(*row) for row in _REQUESTS]
