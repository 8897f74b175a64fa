/** The little of Plotly that the viewer uses; its script is part of the page. */

interface PlotlyElement extends HTMLDivElement {
  data?: unknown[];
  on(name: 'plotly_hover' | 'plotly_click', listener: (event: { points: { x: number; y: number; curveNumber: number }[]; event: MouseEvent }) => void): void;
  on(name: 'plotly_unhover' | 'plotly_doubleclick', listener: () => void): void;
  on(name: 'plotly_relayout', listener: (change: Record<string, unknown>) => void): void;
}

declare const Plotly: {
  Fx: { unhover(element: HTMLElement): void };
  react(element: HTMLElement, data: object[], layout: object, config: object): Promise<PlotlyElement>;
  restyle(element: HTMLElement, change: object, traces: number[]): Promise<PlotlyElement>;
  relayout(element: HTMLElement, change: object): Promise<PlotlyElement>;
};
