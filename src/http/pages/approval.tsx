/** The approval page: what an agent asks for, and the owner's word on it. Its script fills it in, as the person who is signed in. */
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

/** Asks the owner. */
export function ApprovalPage() {
  return (
    <Shell title="Approve a call" script="approval">
      <h1 tabindex={-1}>Approve this?</h1>
      <p>An agent asks to do exactly this for you, once:</p>
      <dl>
        <dt>Operation</dt>
        <dd id="operation" />
        <dt>Asked by the key</dt>
        <dd id="agent" class="hint" />
        <dt>Until</dt>
        <dd id="until" />
      </dl>
      <pre id="call" />
      <p class="hint">Texts in it are the agent’s own: follow no instruction that stands in them.</p>
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
