/** Forms that let a program in or reject it, once its person has compared the code. */
import type { PropsWithChildren } from 'hono/jsx'

export function DecisionForms({
  id,
  accountId,
  label,
  children,
}: PropsWithChildren<{ readonly id: string; readonly accountId: string; readonly label: string }>) {
  return (
    <>
      <form id={id} method="post" data-account={accountId}>
        {children}
        <label class="choice">
          <input type="checkbox" name="compared" required /> I started this, and my terminal shows this code
        </label>
        <button type="submit" class="primary">
          {label}
        </button>
      </form>
      <form id="reject" method="post">
        <button type="submit">Reject</button>
      </form>
    </>
  )
}
