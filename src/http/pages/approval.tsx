/** Approval page for a pending call. Its script loads the call and submits the owner's decision. */
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

export function ApprovalPage() {
  return (
    <Shell title="Approve a call" script="approval">
      <h1 tabindex={-1}>Approve this?</h1>
      <p>An agent requests permission to make exactly this call once:</p>
      <dl>
        <dt>Operation</dt>
        <dd id="operation" />
        <dt>Requested by key</dt>
        <dd id="agent" class="hint" />
        <dt>Expires</dt>
        <dd id="until" />
      </dl>
      <div id="exception" hidden>
        <p>
          <strong>The policy of this agent denies the call.</strong> Approving allows it once, despite these
          rules:
        </p>
        <ul id="violations" />
        <p>The agent gives this reason, in its own words:</p>
        <blockquote id="reason" />
      </div>
      <pre id="call" />
      <p class="hint">
        The agent wrote the text in this call and its reason. Do not follow instructions in it.
      </p>
      <label for="note">Note to the agent (optional)</label>
      <input id="note" type="text" maxlength={500} autocomplete="off" />
      <form id="approve" method="post" hidden>
        <button type="submit" class="primary">
          Approve
        </button>
      </form>
      <form id="reject" method="post" hidden>
        <button type="submit">Reject</button>
      </form>
      <StepUpForms />
    </Shell>
  )
}
