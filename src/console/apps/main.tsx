/**
 * The views that hosts of agents show inside their chats (MCP Apps): an approval, a budget, a receipt. One script for all
 * three; the document says which.
 */
import { render } from 'preact'
import { ApprovalView } from './approval.tsx'
import { BudgetView } from './budget.tsx'
import { connect } from './host.ts'
import { ReceiptView } from './receipt.tsx'

const views: Readonly<Record<string, () => preact.JSX.Element>> = {
  approval: ApprovalView,
  budget: BudgetView,
  receipt: ReceiptView,
}

const View = views[document.body.dataset.view ?? '']
if (View !== undefined) {
  render(<View />, document.body)
  void connect()
}
