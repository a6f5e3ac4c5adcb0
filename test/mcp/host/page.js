/** The page of a host that shows a view: the package's own bridge, and a frame without rights of its own. */
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

/**
 * Shows a view. The test gives `openPage` and `callTool`. @param shown.result null: the call still runs
 */
window.show = async ({ theme, input, result, opensPages }) => {
  document.body.style.colorScheme = theme
  document.body.style.background = theme === 'dark' ? '#222' : '#fff'
  const frame = document.createElement('iframe')
  frame.title = 'View'
  frame.sandbox.add('allow-scripts')
  document.body.replaceChildren(frame)
  const inner = frame.contentWindow
  if (inner === null) throw new Error('a frame has a window')
  const bridge = new AppBridge(
    null,
    { name: 'host', version: '1' },
    { openLinks: {}, serverTools: {} },
    { hostContext: { theme } },
  )
  bridge.onopenlink = async ({ url }) => {
    if (!opensPages) return { isError: true }
    await window.openPage(url)
    return {}
  }
  bridge.oncalltool = (params) => window.callTool(params)
  bridge.onsizechange = ({ height }) => {
    if (height !== undefined) frame.style.height = `${height}px`
  }
  bridge.oninitialized = async () => {
    await bridge.sendToolInput({ arguments: input })
    if (result !== null) await bridge.sendToolResult(result)
  }
  await bridge.connect(new PostMessageTransport(inner, inner))
  frame.src = '/view'
}
